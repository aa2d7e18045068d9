//! Messages that are longer than the receive: nothing outside the receive's type is written, and all is as on the bare host.

use crate::messages::same;
use crate::setup::Host;

/// Lines of `truncated`, of both ranks.
fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_by_key(|line| line.split(' ').nth(1).and_then(|n| n.parse::<u32>().ok()));
    lines.join("\n")
}

#[test]
fn truncated_messages_change_nothing_outside_the_receive_by_the_shipped_policy() {
    let host = Host::OpenMpi;
    let program = host.compile("truncated", &[]);
    let run = || host.ranks(2, &program).arg("400").arg("7");
    let bare = sorted(&run().text().0);
    assert!(bare.contains("class 15") && !bare.contains("access"), "{bare}");
    same("Open MPI, by the table", &sorted(&run().preload().text().0), &bare);
}
