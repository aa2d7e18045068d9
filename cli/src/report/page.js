// Sorts and filters the findings. The state of the page is kept in the fragment of its URL, so that
// a view can be bookmarked and sent: #sort=case&down&class=bug&check=pack&text=vector&open
"use strict";
(() => {
  const trouble = (text) => {
    const note = document.getElementById("trouble");
    note.textContent = "The script of this page failed: " + text;
    note.hidden = false;
  };
  window.addEventListener("error", (event) => trouble(event.message));
  const table = document.getElementById("findings");
  if (!table) {
    return;
  }
  const rows = Array.from(table.tBodies);
  const heads = Array.from(table.tHead.rows[0].cells);
  const filters = document.getElementById("filters");
  const fields = { class: filters.elements.class, check: filters.elements.check, text: filters.elements.text };
  const toggle = document.getElementById("toggle");
  const numbers = new Set(heads.filter((head) => head.classList.contains("number")).map((head) => head.dataset.key));
  let sort = "";
  let down = false;

  // Numbers inside of texts, such as the section 5.1.2, are compared as numbers.
  const words = new Intl.Collator("en", { numeric: true });
  const compare = (a, b) => {
    const [x, y] = [a.dataset[sort], b.dataset[sort]];
    // A number that was not recorded is an empty text. It comes last, whatever the order.
    if (numbers.has(sort) && (x === "" || y === "")) {
      return Number(x === "") - Number(y === "");
    }
    const order = numbers.has(sort) ? Number(x) - Number(y) : words.compare(x, y);
    return down ? -order : order;
  };

  const show = () => {
    const text = fields.text.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const wanted = (key) => fields[key].value === "" || row.dataset[key] === fields[key].value;
      const fits = wanted("class") && wanted("check") && (text === "" || row.textContent.toLowerCase().includes(text));
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    document.getElementById("number").value = `${shown} of ${rows.length}`;
    for (const head of heads) {
      if (head.dataset.key === sort) {
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
      } else {
        head.removeAttribute("aria-sort");
      }
    }
    // Without a chosen column, findings are shown in the order in which they were found.
    const order = sort === "" ? rows : rows.slice().sort(compare);
    table.append(...order);
  };

  const storeState = () => {
    const state = new URLSearchParams();
    if (sort !== "") {
      state.set("sort", sort);
      if (down) {
        state.set("down", "");
      }
    }
    for (const [key, field] of Object.entries(fields)) {
      if (field.value !== "") {
        state.set(key, field.value);
      }
    }
    history.replaceState(null, "", "#" + state);
    show();
  };

  const details = () => rows.map((row) => row.querySelector("details"));
  const open = (wanted) => {
    details().forEach((element) => { element.open = wanted; });
    toggle.textContent = wanted ? "Close all" : "Open all";
  };

  const recall = () => {
    const fragment = decodeURIComponent(location.hash.slice(1));
    const one = rows.find((row) => row.id === fragment);
    if (one) {
      one.querySelector("details").open = true;
      return;
    }
    const state = new URLSearchParams(location.hash.slice(1));
    sort = heads.some((head) => head.dataset.key === state.get("sort")) ? state.get("sort") : "";
    down = state.has("down");
    for (const [key, field] of Object.entries(fields)) {
      field.value = state.get(key) ?? "";
      if (field.selectedIndex === -1) {
        field.value = "";
      }
    }
    open(state.has("open"));
  };

  for (const head of heads) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => {
      down = sort === head.dataset.key && !down;
      sort = head.dataset.key;
      storeState();
    });
    head.append(button);
  }
  filters.addEventListener("input", storeState);
  filters.addEventListener("submit", (event) => event.preventDefault());
  toggle.addEventListener("click", () => open(!details().every((element) => element.open)));
  window.addEventListener("hashchange", () => { recall(); show(); });
  filters.hidden = false;
  recall();
  show();
})();
