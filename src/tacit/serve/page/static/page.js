// Makes the pages quicker to use; everything works without it. It talks to this server only, and writes text, not markup
// (but for the server's own page, whose policy forbids scripts inside).
"use strict";
document.documentElement.classList.add("js");

const by = (id) => document.getElementById(id);
const box = by("sql");
const here = location.pathname.replace(/\/(ask|start|entry\/.*)$/, "");

// --- Looking and asking without leaving the page: the parts of the page that the server sends are put in place ---------

function fields(form, submitter) {
  const data = new URLSearchParams(new FormData(form));
  if (submitter && submitter.name) data.set(submitter.name, submitter.value);
  return data;
}

let under = null; // the request that is under way
let shown = location.pathname + location.search;

async function load(address, options = {}, { push = true, asked = null, focus = null } = {}) {
  if (under) under.abort();
  const mine = under = new AbortController();
  const done = working();
  try {
    const response = await fetch(address, { ...options, signal: mine.signal });
    if (response.redirected) return void location.assign(response.url); // the session is over
    const told = new DOMParser().parseFromString(await response.text(), "text/html");
    if (mine !== under) return;
    done();
    put(told, asked);
    const query = by("answer").dataset.query;
    const now = query ? `${here}?${query}` : here;
    if (push && now !== location.pathname + location.search) {
      history.pushState(null, "", now);
      shown = now;
    }
    by("status").textContent = ["#answer-title", ".figure", ".said", ".source"]
      .map((part) => by("answer").querySelector(part)?.textContent.trim()).filter(Boolean).join(". ");
    focus?.();
  } catch (error) {
    if (error.name === "AbortError") return;
    by("status").textContent = "The server cannot be reached.";
    by("answer").textContent = "The server cannot be reached. If the question got there, its answer is kept: ask again.";
  } finally {
    done();
    if (mine === under) under = null;
  }
}

function put(told, asked) {
  const answer = by("answer");
  const fresh = told.getElementById("answer");
  if (!fresh) return void answer.replaceChildren(...told.querySelector("main").childNodes); // refused at the door
  const held = where(document.activeElement);
  if (asked !== "filter") { // making a condition leaves the last answer alone
    answer.replaceChildren(...fresh.childNodes);
    answer.dataset.query = fresh.dataset.query;
    ready(answer);
  }
  for (const id of ["question", "budget", "pictured"]) by(id).replaceChildren(...told.getElementById(id).childNodes);
  const links = told.querySelectorAll("#columns .list a");
  document.querySelectorAll("#columns .list a").forEach((link, i) => {
    link.replaceChildren(...links[i].childNodes);
    link.href = links[i].href;
    if (links[i].hasAttribute("aria-current")) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  });
  const sql = told.getElementById("sql").value;
  if (asked !== "sql") box.value = sql;
  document.querySelector("[data-stands]").textContent = sql;
  if (held) document.querySelector(held)?.focus();
  answer.dataset.turn = Number(answer.dataset.turn || 0) + 1; // who waits for an answer can see that it is another one
  if (answer.getBoundingClientRect().top > innerHeight * 0.8) answer.scrollIntoView({ block: "start" });
}

function where(element) { // how to find a control again in the page that comes
  if (!element || !element.closest("#question")) return "";
  if (element.id) return `#${element.id}`;
  if (element.name) return `#question [name="${element.name}"]${element.matches("button, [type=checkbox]") ? `[value="${element.value}"]` : ""}`;
  return element.matches(".away") ? "#question [name=add]" : "";
}

function working() {
  const answer = by("answer");
  const line = document.createElement("p");
  const start = Date.now();
  const say = () => { line.textContent = `Working, ${Math.round((Date.now() - start) / 1000)} s`; };
  const begin = setTimeout(() => { say(); answer.prepend(line); by("status").textContent = "Working"; }, 250);
  const every = setInterval(say, 1000);
  line.className = "working";
  answer.classList.add("busy");
  answer.setAttribute("aria-busy", "true");
  return () => {
    clearTimeout(begin);
    clearInterval(every);
    line.remove();
    if (document.querySelector(".working")) return; // another one has begun
    answer.classList.remove("busy");
    answer.removeAttribute("aria-busy");
  };
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.ask) return;
  event.preventDefault();
  const submitter = event.submitter;
  if (submitter?.value === "filter") return void add(form);
  load(form.action, { method: "POST", body: fields(form, submitter) }, { asked: form.dataset.ask })
    .then(() => price(document.querySelector(`[data-ask="${form.dataset.ask}"]`), 0));
});

function add(form) {
  load(`${here}?${fields(form)}&do=filter`, {}, {
    push: false,
    asked: "filter",
    focus: () => document.querySelector("details[open].condition :is(select, input)")?.focus(),
  });
}

document.addEventListener("click", async (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const link = event.target.closest("a[data-look]");
  if (link) {
    event.preventDefault();
    const drill = link.hasAttribute("data-drill");
    return void load(link.href, {}, { focus: drill ? () => by("answer").focus({ preventScroll: true }) : null });
  }
  const bar = event.target.closest(".barred .bar");
  if (bar) return void bar.closest("tr").querySelector("[data-drill]")?.click();
  const cell = event.target.closest("figure.leads rect");
  if (cell) return void leads(cell.closest("figure"))?.get(cell)?.click();
  const copy = event.target.closest("a[data-copy]");
  if (copy && navigator.clipboard) {
    event.preventDefault();
    await navigator.clipboard.writeText(copy.href);
    const words = copy.textContent;
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = words; }, 1500);
  }
});

addEventListener("popstate", () => {
  const there = location.pathname + location.search;
  if (!box || there === shown) return; // a link within the page, whose form may be half filled in
  shown = there;
  load(location.href, {}, { push: false });
});

function leads(figure) { // the link of each bar or cell of a picture, where it has all of them
  const shapes = [...figure.querySelectorAll("g > rect")].filter((shape) => shape.querySelector("title"));
  const links = by("answer").querySelectorAll("[data-drill]");
  return links.length && shapes.length === links.length ? new Map(shapes.map((shape, i) => [shape, links[i]])) : null;
}

// --- The price, while a question is being made ---------------------------------------------------------------------

let waiting = null;

function price(form, delay = 350) {
  if (waiting) { clearTimeout(waiting.timer); waiting.stop.abort(); }
  const line = form?.querySelector("[data-price]");
  if (!line) return;
  const stop = new AbortController();
  const timer = setTimeout(async () => {
    if (form.dataset.ask === "sql" && !box.value.trim()) { line.textContent = ""; return; }
    try {
      const response = await fetch(`${here}/price`, { method: "POST", body: fields(form), signal: stop.signal });
      if (response.redirected || !response.ok) return;
      const told = await response.json();
      line.textContent = told.text;
      line.dataset.level = told.level;
      if (form.dataset.ask === "click") {
        document.querySelector("[data-stands]").textContent = told.sql;
        if (document.activeElement !== box) box.value = told.sql;
      }
    } catch { /* a newer one is under way, or the server is gone: asking will say so */ }
  }, delay);
  waiting = { timer, stop };
}

for (const kind of ["input", "change"]) {
  document.addEventListener(kind, (event) => {
    const form = event.target.closest("form[data-ask]");
    if (event.target.id === "search") return void search(event.target.value);
    if (!form) return;
    if (event.target.name === "add") { if (kind === "change" && event.target.value) add(form); return; }
    summaries(form);
    price(form);
  });
}

function summaries(form) {
  for (const one of form.querySelectorAll("details.condition")) {
    const ticked = one.querySelectorAll("input:checked, option:checked:not([value=''])");
    const ends = [...one.querySelectorAll("[name^='from.'], [name^='to.']")].map((end) => end.value);
    const values = [...ticked].filter((tick) => tick.name || tick.parentElement.multiple);
    const said = [];
    if (ends.some(Boolean)) said.push(`${ends[0] || "the least"} to ${ends[1] || "the most"}`);
    if (values.length) said.push(values.length < 4 ? values.map((v) => (v.closest("label") || v).textContent).join(" or ")
      : `${values.length} values`);
    one.querySelector("[data-chosen]").textContent = said.join(" or ") || "any";
  }
}

// --- Searching the columns -----------------------------------------------------------------------------------------

function search(words) {
  const part = words.trim().toLowerCase();
  let seen = 0;
  for (const item of document.querySelectorAll("#columns .list > li")) {
    item.hidden = !item.textContent.toLowerCase().includes(part);
    seen += !item.hidden;
  }
  document.querySelector("#columns .none").hidden = seen > 0;
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

// --- Copying, and pictures as files ----------------------------------------------------------------------------------

function ready(root) {
  for (const figure of root.querySelectorAll("figure.chart")) figure.classList.toggle("leads", Boolean(leads(figure)));
  const svg = root.querySelector("a[data-svg]");
  if (svg) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "PNG";
    button.addEventListener("click", () => png(svg));
    const item = document.createElement("li");
    item.append(button);
    svg.closest("li").after(item);
  }
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

async function png(svg) { // the picture itself, twice as fine, drawn by the browser
  const image = new Image();
  image.src = svg.href;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth * 2, image.naturalHeight * 2];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((file) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = `${here.split("/").pop()}-answer.png`;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}

if (by("answer")) ready(document);
