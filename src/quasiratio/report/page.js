
"use strict";
(() => {
  const root = document.documentElement;
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  root.classList.add("js");

  // Light and dark: the system's choice until the reader makes one.
  const system = matchMedia("(prefers-color-scheme: dark)");
  const remembered = {
    get() { try { return localStorage.getItem("quasiratio-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("quasiratio-theme", value); } catch { /* a page from a file may not */ } },
  };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const nameTheme = () => { one("#theme-name").textContent = isDark() ? "Dark" : "Light"; };
  if (["light", "dark"].includes(remembered.get())) root.dataset.theme = remembered.get();
  one("#theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remembered.set(root.dataset.theme);
    nameTheme();
  });
  system.addEventListener("change", nameTheme);
  nameTheme();

  // Tables: up, down, as they were; numbers by value, missing values last.
  const key = (cell) => {
    if (cell.dataset.sort === "") return { missing: true };
    if (cell.dataset.sort !== undefined) {
      return { number: Number(cell.dataset.sort.replace("inf", "Infinity")) };
    }
    return { text: cell.textContent.trim() };
  };
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const compare = (a, b) => {
    if (a.number !== undefined && b.number !== undefined) return a.number === b.number ? 0 : a.number < b.number ? -1 : 1;
    if (a.number !== undefined) return -1;
    if (b.number !== undefined) return 1;
    return collator.compare(a.text, b.text);
  };
  for (const table of all(".table-box table")) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      one("button", heading).addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" }[heading.getAttribute("aria-sort")];
        for (const other of headings) other.setAttribute("aria-sort", "none");
        heading.setAttribute("aria-sort", next);
        if (next === "none") { body.append(...original); return; }
        const sign = next === "ascending" ? 1 : -1;
        const keyed = original.map((row, place) => ({ row, place, key: key(row.cells[column]) }));
        keyed.sort((a, b) => {
          if (a.key.missing || b.key.missing) return (a.key.missing ? 1 : 0) - (b.key.missing ? 1 : 0) || a.place - b.place;
          return sign * compare(a.key, b.key) || a.place - b.place;
        });
        body.append(...keyed.map((entry) => entry.row));
      });
    });
  }

  // Search: a section whose title matches stays whole; of the others, matching pictures, rows and prose.
  const search = one("#search");
  const parts = all("section.part").map((section) => ({
    section,
    title: one("h2", section).textContent.toLowerCase(),
    rows: all("tbody tr", section),
    pieces: all(".picture, .facts > div, .prose", section),
    boxes: all(".table-box, .facts, .gallery", section),
  }));
  const text = new Map();
  for (const part of parts) {
    for (const element of [...part.rows, ...part.pieces]) text.set(element, element.textContent.toLowerCase());
  }
  const links = all(".index li a").map((link) => ({
    item: link.closest("li"), target: document.getElementById(link.getAttribute("href").slice(1)),
  }));
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (content) => words.every((word) => content.includes(word));
    const found = { sections: 0, figures: 0, rows: 0 };
    for (const { section, title, rows, pieces, boxes } of parts) {
      const whole = matches(title);
      let shown = whole ? 1 : 0;
      for (const element of [...rows, ...pieces]) {
        element.hidden = !(whole || matches(text.get(element)));
        if (element.hidden) continue;
        shown += 1;
        if (element.matches(".picture")) found.figures += 1;
        if (element.matches("tr")) found.rows += 1;
      }
      for (const box of boxes) {
        box.hidden = !all("tbody tr, .picture, .facts > div", box).some((element) => !element.hidden);
      }
      section.hidden = shown === 0;
      if (shown) found.sections += 1;
    }
    for (const { item, target } of links) item.hidden = words.length > 0 && (!target || Boolean(target.closest("[hidden]")) || !target.matches(".part, .picture"));
    one("#nothing").hidden = found.sections > 0 || !words.length;
    one("#found").textContent = words.length
      ? `${plural(found.sections, "section")}, ${plural(found.figures, "figure")}, ${plural(found.rows, "table row")}`
      : "";
  };
  search.addEventListener("input", filter);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { search.value = ""; filter(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || one("#lightbox").open) return;
    if (document.activeElement && document.activeElement.matches("input, textarea")) return;
    event.preventDefault();
    search.focus();
  });
  if (search.value) filter();

  // The lightbox: a native dialog, so that Esc closes it and the focus stays inside.
  const box = one("#lightbox");
  const stage = one(".lightbox-picture", box);
  const picture = one("img", stage);
  let opener = null;
  const visible = () => all(".enlarge").filter((button) => !button.closest("[hidden]"));
  const zoom = (on) => {
    stage.classList.toggle("zoomed", on);
    one("[data-do=zoom]", box).setAttribute("aria-pressed", String(on));
  };
  const show = (button) => {
    opener = button;
    const figure = button.closest("figure");
    const source = one("img", button);
    const title = one("h3", figure);
    const caption = one("figcaption", figure).textContent;
    picture.src = source.src;
    picture.alt = source.alt;
    one("#lightbox-title").textContent = title ? title.textContent : "Figure";
    one(".lightbox-caption", box).textContent = caption;
    zoom(false);
    if (!box.open) box.showModal();
  };
  const step = (by) => {
    const buttons = visible();
    show(buttons[(buttons.indexOf(opener) + by + buttons.length) % buttons.length]);
  };
  const save = () => {
    const link = document.createElement("a");
    link.href = picture.src;
    link.download = `${opener.closest("figure").id}.${picture.src.startsWith("data:image/png") ? "png" : "svg"}`;
    link.click();
  };
  for (const button of all(".enlarge")) button.addEventListener("click", () => show(button));
  const actions = {
    previous: () => step(-1), next: () => step(1), save, close: () => box.close(),
    zoom: () => zoom(!stage.classList.contains("zoomed")),
  };
  for (const button of all("[data-do]", box)) button.addEventListener("click", actions[button.dataset.do]);
  picture.addEventListener("click", actions.zoom);
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
  box.addEventListener("keydown", (event) => {
    if (stage.classList.contains("zoomed") && document.activeElement === stage) return;
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  box.addEventListener("close", () => { picture.removeAttribute("src"); if (opener) opener.focus(); });

  // The command, with a way for browsers that keep the clipboard from pages of files.
  one("#copy").addEventListener("click", async () => {
    const command = one("#command");
    let done = true;
    try {
      await navigator.clipboard.writeText(command.textContent);
    } catch {
      getSelection().selectAllChildren(command);
      done = document.execCommand("copy");
    }
    one("#copied").textContent = done ? "Copied." : "Selected; press Ctrl+C to copy.";
  });

  // On narrow screens the index begins closed; on paper every picture is there.
  if (matchMedia("(max-width: 56rem)").matches) one(".index details").open = false;
  addEventListener("beforeprint", () => { for (const image of all("img[loading=lazy]")) image.loading = "eager"; });
})();
