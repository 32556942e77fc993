// Makes the pages quicker to use; everything works without it. It talks to this server only, and writes text, not markup
// (but for the server's own page, whose policy forbids scripts inside).
"use strict";
document.documentElement.classList.add("js");

const by = (id) => document.getElementById(id);
const box = by("sql");
const here = location.pathname.replace(/\/ask$/, "");

// --- Asking without leaving the page -------------------------------------------------------------------------------

function fields(form, submitter) {
  const data = new URLSearchParams(new FormData(form));
  if (submitter && submitter.name) data.set(submitter.name, submitter.value);
  return data;
}

async function ask(form, submitter) {
  const answer = by("answer");
  answer.classList.add("busy");
  answer.setAttribute("aria-busy", "true");
  by("status").textContent = "Asking";
  try {
    const response = await fetch(form.action, { method: "POST", body: fields(form, submitter) });
    if (response.redirected) return void location.assign(response.url); // the session is over
    const told = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const id of ["answer", "budget"]) {
      const fresh = told.getElementById(id);
      if (fresh) by(id).replaceChildren(...fresh.childNodes);
      else if (id === "answer") answer.replaceChildren(...told.querySelector("main").childNodes); // refused at the door
    }
    const sql = told.getElementById("sql")?.value;
    if (form.dataset.ask === "click" && sql) { box.value = sql; price(box.form, 0); }
    by("status").textContent = ["#answer-title", ".figure", ".said", ".source"]
      .map((part) => answer.querySelector(part)?.textContent.trim()).filter(Boolean).join(". ");
    copying(answer);
    if (answer.getBoundingClientRect().top > innerHeight * 0.8) answer.scrollIntoView({ block: "start" });
  } catch {
    by("status").textContent = "The server cannot be reached.";
    answer.textContent = "The server cannot be reached. If the question got there, its answer is kept: ask again.";
  } finally {
    answer.classList.remove("busy");
    answer.removeAttribute("aria-busy");
    price(form, 0);
  }
}

// --- The price, while a question is being made ---------------------------------------------------------------------

const waiting = new WeakMap();

function price(form, delay = 350) {
  const old = waiting.get(form);
  if (old) { clearTimeout(old.timer); old.stop.abort(); }
  const stop = new AbortController();
  const timer = setTimeout(async () => {
    const line = form.querySelector("[data-price]");
    const stands = form.querySelector("[data-stands]");
    if (form.dataset.ask === "sql" && !box.value.trim()) { line.textContent = ""; return; }
    try {
      const response = await fetch(`${here}/price`, { method: "POST", body: fields(form), signal: stop.signal });
      if (response.redirected || !response.ok) return;
      const told = await response.json();
      line.textContent = told.text;
      line.dataset.level = told.level;
      if (stands) {
        stands.hidden = !told.sql;
        stands.querySelector("code").textContent = told.sql;
      }
    } catch { /* a newer one is under way, or the server is gone: asking will say so */ }
  }, delay);
  waiting.set(form, { timer, stop });
}

for (const form of document.querySelectorAll("form[data-ask]")) {
  form.addEventListener("submit", (event) => { event.preventDefault(); ask(form, event.submitter); });
  for (const kind of ["input", "change"]) form.addEventListener(kind, () => { price(form); summaries(form); });
}

function summaries(form) {
  for (const one of form.querySelectorAll("details.condition")) {
    const ticked = one.querySelectorAll("input:checked, option:checked:not([value=''])");
    const ends = [...one.querySelectorAll("[name^='from.'], [name^='to.']")].map((end) => end.value);
    const values = [...ticked].filter((box) => box.name || box.parentElement.multiple);
    const said = [];
    if (ends.some(Boolean)) said.push(`${ends[0] || "the least"} to ${ends[1] || "the most"}`);
    if (values.length) said.push(values.length < 4 ? values.map((v) => (v.closest("label") || v).textContent).join(", ")
      : `${values.length} chosen`);
    one.querySelector("[data-chosen]").textContent = said.join(" or ") || "any";
  }
}

// --- Completion: names and values of the declared domain ------------------------------------------------------------

const WORDS = ["SELECT", "COUNT(*)", "FROM data", "WHERE", "AND", "OR", "NOT", "IN (", "BETWEEN", "GROUP BY", "ORDER BY",
  "AVG(", "SUM(", "STDDEV(", "VARIANCE(", "MEDIAN(", "QUANTILE_CONT(", "COUNT(*) FILTER (WHERE", "DESC", "LIMIT", "IS NULL"];
const VALUE = /("(?:[^"]|"")+"|[\p{L}_]\w*)\s*(=|<>|!=|>=|<=|<|>|\bBETWEEN(?:\s+\S+\s+AND)?(?=\s)|\bIN\s*\((?:[^()]*,)?)\s*('(?:[^']|'')*|[\w.]*)$/iu;
let columns = null, list = null, active = -1, start = 0, turn = 0;

async function learn() {
  if (columns) return;
  const response = await fetch(`${here}/words`);
  columns = response.ok && !response.redirected ? (await response.json()).columns : [];
}

function found() {
  const before = box.value.slice(0, box.selectionStart);
  const match = VALUE.exec(before);
  const column = match && columns.find((c) => c.name.toLowerCase() === match[1].toLowerCase());
  if (column) {
    start = before.length - match[3].length;
    const sign = match[2].toUpperCase();
    const edges = column.starts && (/^(>=|<|BETWEEN)$/.test(sign) ? column.starts : /^(<=|>|BETWEEN.)/s.test(sign) ? column.ends : null);
    const part = match[3].replace(/^'/, "").toLowerCase();
    return (edges || column.values).filter((v) => v.replace(/^'/, "").toLowerCase().startsWith(part))
      .filter((v) => v !== match[3]).slice(0, 50).map((v) => ({ text: v, about: "" }));
  }
  const word = /"?[\p{L}_][\w*(]*$/u.exec(before)?.[0] ?? "";
  start = before.length - word.length;
  const part = word.toLowerCase();
  const names = columns.map((c) => ({ text: c.name, about: `${c.kind}: ${c.takes}` }));
  return [...names, ...WORDS.map((w) => ({ text: w, about: "" }))]
    .filter((one) => one.text.toLowerCase().replace(/^"/, "").startsWith(part.replace(/^"/, "")) && one.text.toLowerCase() !== part);
}

function close() {
  turn += 1;
  if (!list) return;
  list.remove();
  list = null;
  active = -1;
  box.setAttribute("aria-expanded", "false");
  box.removeAttribute("aria-activedescendant");
}

async function open(always) {
  close();
  const mine = turn;
  await learn();
  if (mine !== turn) return; // closed, or asked again, meanwhile
  const few = found();
  const typed = box.selectionStart - start;
  if (!few.length || (!always && !typed && !VALUE.test(box.value.slice(0, box.selectionStart)))) return;
  list = document.createElement("ul");
  list.className = "suggest";
  list.id = "sql-list";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  few.forEach((one, i) => {
    const item = list.appendChild(document.createElement("li"));
    item.id = `sql-option-${i}`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    item.dataset.text = one.text;
    item.appendChild(document.createElement("span")).textContent = one.text;
    if (one.about) item.appendChild(document.createElement("small")).textContent = one.about;
    item.addEventListener("mousedown", (event) => { event.preventDefault(); take(i); });
  });
  box.after(list);
  box.setAttribute("aria-expanded", "true");
}

function move(to) {
  const items = list.children;
  if (active >= 0) items[active].setAttribute("aria-selected", "false");
  active = (to + items.length) % items.length;
  items[active].setAttribute("aria-selected", "true");
  items[active].scrollIntoView({ block: "nearest" });
  box.setAttribute("aria-activedescendant", items[active].id);
}

function take(i) {
  const text = list.children[i].dataset.text;
  box.setRangeText(/[(*]$|FROM data/.test(text) ? text : `${text} `, start, box.selectionStart, "end");
  close();
  box.focus();
  price(box.form);
}

if (box) {
  for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"],
    ["aria-controls", "sql-list"], ["aria-haspopup", "listbox"], ["aria-multiline", "true"]]) box.setAttribute(name, value);
  box.addEventListener("input", () => open(false));
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      close();
      box.form.requestSubmit(box.form.querySelector("[value=ask]"));
    } else if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      open(true);
    } else if (list && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      move(event.key === "ArrowDown" ? active + 1 : (active < 0 ? 0 : active) - 1);
    } else if (!list && event.key === "ArrowDown" && box.selectionStart === box.value.length) {
      event.preventDefault();
      open(true).then(() => list && move(0));
    } else if (list && active >= 0 && (event.key === "Enter" || event.key === "Tab")) {
      event.preventDefault();
      take(active);
    } else if (event.key === "Escape") {
      if (list) event.preventDefault();
      close(); // also one that is still on its way
    }
  });
}

// --- Copying -------------------------------------------------------------------------------------------------------

function copying(root) {
  if (!navigator.clipboard) return; // plain HTTP from another machine: select and copy by hand
  for (const block of root.querySelectorAll(".code")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = "Copy";
    const title = block.previousElementSibling?.textContent;
    if (title) button.setAttribute("aria-label", `Copy: ${title}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(button);
  }
}

copying(document);
