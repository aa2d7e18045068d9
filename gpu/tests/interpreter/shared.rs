//! Shared memory of one block of threads, with checks for missing barriers.

/// Address at which the array in shared memory begins. It is not 0, so that a kernel that forgets
/// to add this address accesses memory outside of the array.
pub(super) const BASE: u64 = 4096;

/// One byte of shared memory, and the threads that have accessed it.
#[derive(Clone, Copy, Debug, Default)]
struct Byte {
    /// Value of the byte, or `None` if no thread has written the byte.
    value: Option<u8>,
    /// Number of the thread that has written the byte since the last barrier, if there is one.
    writer: Option<u64>,
    /// Threads that have read the byte since the last barrier.
    readers: Readers,
}

/// Threads that have read a byte of shared memory since the last barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Readers {
    #[default]
    None,
    /// A single thread, with this number.
    One(u64),
    Several,
}

/// The array that one block of threads has in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Shared(Vec<Byte>);

impl Shared {
    /// Returns an array of `bytes` bytes that no thread has written yet.
    pub(super) fn new(bytes: u64) -> Shared {
        Shared(vec![Byte::default(); bytes as usize])
    }

    /// Forgets which threads have read and written bytes. The interpreter calls this function when
    /// all threads of the block have reached a barrier.
    pub(super) fn barrier(&mut self) {
        for byte in &mut self.0 {
            (byte.writer, byte.readers) = (None, Readers::None);
        }
    }

    /// Returns the `width` bytes at the address `address`. Returns a message if they do not lie in
    /// the array.
    fn bytes(&mut self, address: u64, width: u64) -> Result<&mut [Byte], String> {
        let from = address.checked_sub(BASE).map(|from| from as usize);
        let bytes = from.and_then(|from| self.0.get_mut(from..from + width as usize));
        bytes.ok_or_else(|| format!("{width} bytes at {address:#x} lie outside of shared memory"))
    }

    pub(super) fn load(&mut self, address: u64, width: u64, thread: u64) -> Result<u64, String> {
        let mut value = [0; 8];
        for (place, byte) in value.iter_mut().zip(self.bytes(address, width)?) {
            if byte.writer.is_some_and(|writer| writer != thread) {
                return Err(format!(
                    "thread {thread} reads shared {address:#x} without a barrier after the write"
                ));
            }
            *place = byte.value.ok_or_else(|| format!("shared {address:#x} was not set"))?;
            byte.readers = match byte.readers {
                Readers::None => Readers::One(thread),
                Readers::One(reader) if reader == thread => byte.readers,
                Readers::One(_) | Readers::Several => Readers::Several,
            };
        }
        Ok(u64::from_le_bytes(value))
    }

    pub(super) fn store(&mut self, address: u64, width: u64, value: u64, thread: u64) -> Result<(), String> {
        for (byte, value) in self.bytes(address, width)?.iter_mut().zip(value.to_le_bytes()) {
            let is_read = byte.readers != Readers::None && byte.readers != Readers::One(thread);
            if is_read || byte.writer.is_some_and(|writer| writer != thread) {
                return Err(format!("two threads access shared {address:#x} without a barrier between them"));
            }
            (byte.value, byte.writer) = (Some(value), Some(thread));
        }
        Ok(())
    }
}
