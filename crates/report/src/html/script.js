"use strict";
(() => {
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const root = document.documentElement;
  const search = document.getElementById("search");
  const chips = all(".chip");
  const articles = all("article");
  const rows = all("#overview tbody tr");
  const nothing = document.getElementById("nothing");
  const texts = articles.map((article) => article.textContent.toLowerCase());

  const filter = () => {
    const shownRanks = new Set(chips.filter((chip) => chip.getAttribute("aria-pressed") === "true").map((chip) => chip.dataset.rank));
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    articles.forEach((article, index) => {
      const shown = shownRanks.has(article.dataset.rank) && words.every((word) => texts[index].includes(word));
      article.hidden = !shown;
      rows[index].hidden = !shown;
      left += shown ? 1 : 0;
    });
    nothing.hidden = left > 0 || articles.length === 0;
  };

  const toggle = (chip) => {
    chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
    filter();
  };

  const showEverything = () => {
    search.value = "";
    chips.forEach((chip) => chip.setAttribute("aria-pressed", "true"));
    filter();
  };

  const switchTheme = () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  };

  const current = () => articles.indexOf(document.activeElement ? document.activeElement.closest("article") : null);

  const move = (by) => {
    const shown = articles.filter((article) => !article.hidden);
    if (shown.length === 0) return;
    const place = shown.indexOf(articles[current()]);
    const next = place < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.min(Math.max(place + by, 0), shown.length - 1);
    shown[next].focus({ preventScroll: true });
    shown[next].scrollIntoView({ block: "start" });
  };

  // Where pages from files may not use the clipboard, the command is selected, so that Ctrl-C copies it.
  const copy = (button) => {
    const code = button.parentElement.querySelector("code");
    const range = document.createRange();
    range.selectNodeContents(code);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    let copied = false;
    try { copied = document.execCommand("copy"); } catch { copied = false; }
    button.textContent = copied ? "copied" : "selected";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  };

  const keys = {
    j: () => move(1),
    k: () => move(-1),
    t: switchTheme,
    c: () => { const button = (articles[current()] || document).querySelector(".copy"); if (button) copy(button); },
    "/": () => { search.focus(); search.select(); },
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape") { showEverything(); search.blur(); return; }
    if (event.target === search) return;
    const chip = chips[Number(event.key) - 1];
    const action = keys[event.key] || (chip && (() => toggle(chip)));
    if (action) { event.preventDefault(); action(); }
  });
  search.addEventListener("input", filter);
  chips.forEach((chip) => chip.addEventListener("click", () => toggle(chip)));
  document.getElementById("theme").addEventListener("click", switchTheme);
  all(".copy").forEach((button) => button.addEventListener("click", () => copy(button)));
  // On paper nothing can be opened.
  addEventListener("beforeprint", () => all("details").forEach((details) => { details.open = true; }));
  root.dataset.ready = "yes";
})();
