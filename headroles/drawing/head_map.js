// The map of all heads: choose what it shows, point at a head, choose it to see its sentences.
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
const cellsOf = (column) => (Array.isArray(column) ? column : column.at.map((k) => column.texts[k]));
const shown = (value) => (value === null || value === "" ? "-" : String(value));

class HeadMap {
  constructor(holder, panel) {
    this.data = JSON.parse(holder.querySelector("script").textContent);
    this.looks = new Map(this.data.legend.map(([sign, , look]) => [sign, look]));
    this.views = this.data.views.map((view) => ({
      ...view,
      values: cellsOf(view.values),
      marks: cellsOf(view.marks),
      facts: view.facts.map(([name, ...columns]) => [name, columns.map(cellsOf)]),
    }));
    this.views.forEach((view) => this.scale(view));
    this.panel = panel;
    this.active = 0;
    this.told = make("p", { class: "told" });
    this.bar = make("div", { class: "scale" });
    this.arrows = make("div", { class: "changes" });
    holder.append(this.controls(), this.grid(), this.told, this.bar, this.legend(), this.arrows);
    holder.hidden = panel.hidden = false;
    this.show(this.views[0]);
  }

  // White is uniform attention; the full colour is the strongest head with the role.
  scale(view) {
    const numbers = view.values.filter((one) => one !== null);
    const full = view.values.filter((one, k) => one !== null && this.look(view, k) === "full");
    const reach = Math.max(...numbers.map(Math.abs), 0) || 1;
    view.low = this.data.low ?? -reach;
    view.high = this.data.low === null ? reach : Math.max(...(full.length ? full : [...numbers, view.line ?? view.low + 1]));
    view.share = (value) => {
      if (this.data.low === null) return value / view.high; // negative where the value is
      const share = (value - view.low) / (view.high - view.low || 1);
      return Math.sqrt(Math.min(1, Math.max(0, share)));
    };
    const beyond = view.facts.find(([name]) => name === "beyond distance")?.[1][0];
    const rank = (k) => (this.look(view, k) === "full" ? 1e6 : 0) + Math.abs((beyond ?? view.values)[k] ?? 0);
    view.best = view.values.reduce((best, _, k) => (rank(k) > rank(best) ? k : best), 0);
  }

  look(view, k) {
    return view.values[k] === null ? "missing" : this.looks.get(view.marks[k]) ?? "pale";
  }

  controls() {
    this.choice = make("select");
    const groups = new Map();
    this.views.forEach((view, k) => {
      if (!groups.has(view.group)) groups.set(view.group, make("optgroup", { label: view.group }));
      groups.get(view.group).append(make("option", { value: k }, view.words));
    });
    this.choice.append(...groups.values());
    this.choice.addEventListener("change", () => this.show(this.views[Number(this.choice.value)]));
    return make("label", { class: "controls" }, "Role ", this.choice);
  }

  legend() {
    const list = make("ul", { class: "legend" });
    for (const [sign, words, look] of this.data.legend) {
      list.append(make("li", {}, make("i", { class: `cell ${look}`, "aria-hidden": "true" }, this.sign(sign, look)), words));
    }
    return list;
  }

  sign(mark, look) {
    return look === "hatched" || look === "framed" ? "" : mark;
  }

  // The cells, of which one can be reached by the tabulator, and all by arrows.
  grid() {
    const { layers, heads, title } = this.data;
    const grid = make("div", { role: "grid", class: "grid", "aria-label": title });
    grid.style.setProperty("--heads", heads);
    grid.style.setProperty("--layers", layers);
    this.cells = [];
    const row = (...cells) => grid.append(make("div", { role: "row" }, ...cells));
    const name = (role, text) => make("span", { role }, String(text));
    row(name("columnheader", "layer"), ...[...Array(heads)].map((_, k) => name("columnheader", k)));
    for (let layer = 0; layer < layers; layer += 1) {
      const own = [...Array(heads)].map(() => make("span", { role: "gridcell", tabindex: "-1" }));
      this.cells.push(...own);
      row(name("rowheader", layer), ...own);
    }
    this.cells.forEach((cell, k) => {
      cell.addEventListener("mouseenter", () => this.tell(k));
      cell.addEventListener("focus", () => this.activate(k));
      cell.addEventListener("click", () => this.pick(k));
    });
    grid.addEventListener("mouseleave", () => this.tell(this.chosen));
    grid.addEventListener("keydown", (event) => this.pressed(event));
    return grid;
  }

  pressed(event) {
    const { heads } = this.data;
    const start = this.active - (this.active % heads);
    const ways = {
      ArrowRight: Math.min(this.active + 1, start + heads - 1),
      ArrowLeft: Math.max(this.active - 1, start),
      ArrowDown: this.active + heads,
      ArrowUp: this.active - heads,
      Home: start,
      End: start + heads - 1,
    };
    if (event.key === "Enter" || event.key === " ") this.pick(this.active);
    else if (!(event.key in ways)) return;
    else this.cells[ways[event.key]]?.focus();
    event.preventDefault();
  }

  activate(k) {
    this.cells[this.active].tabIndex = -1;
    this.cells[k].tabIndex = 0;
    this.active = k;
    this.tell(k);
  }

  name(k) {
    return `${Math.floor(k / this.data.heads)}-${k % this.data.heads}`;
  }

  facts(view, k) {
    const value = view.values[k];
    const signed = this.data.low === null && value > 0 ? `+${value}` : shown(value);
    const others = view.facts.map(([name, columns]) => [name, columns.map((one) => shown(one[k])).join(" to ")]);
    return [[this.data.value, signed], ...others].filter(([, text]) => text !== "-");
  }

  words(k) {
    return this.facts(this.view, k).map(([name, text]) => `${name} ${text}`).join(", ");
  }

  tell(k) {
    this.told.replaceChildren(make("b", {}, `Head ${this.name(k)}`), ` ${this.view.words}: ${this.words(k) || "no value"}`);
  }

  show(view) {
    this.view = view;
    this.choice.value = String(this.views.indexOf(view));
    this.cells.forEach((cell, k) => {
      const look = this.look(view, k);
      const depth = look === "missing" ? 0 : view.share(view.values[k]);
      cell.className = `cell ${look}`;
      cell.classList.toggle("down", depth < 0);
      cell.classList.toggle("deep", Math.abs(depth) > 0.55 && look !== "pale");
      cell.style.setProperty("--depth", Math.abs(depth).toFixed(3));
      cell.textContent = this.sign(view.marks[k], look);
      cell.setAttribute("aria-label", `head ${this.name(k)}: ${this.words(k) || "no value"}`);
    });
    this.drawScale();
    this.drawChanges();
    const head = this.picked ?? view.best;
    this.activate(head);
    this.choose(head);
  }

  // A head that the reader chose stays chosen; until then it is the best one of the role.
  pick(k) {
    this.picked = k;
    this.choose(k);
  }

  drawScale() {
    const { low, high, line, unit, share } = this.view;
    const bar = make("div", { class: this.data.low === null ? "bar signed" : "bar" });
    const isShown = line !== null && this.data.low !== null;
    if (isShown && line <= high) bar.append(make("i", { style: `left:${100 * share(line)}%` }));
    const ends = [low, high].map((one) => make("span", {}, String(+one.toPrecision(3))));
    const about = isShown ? `${unit}; the line is the threshold, ${line}` : unit;
    this.bar.replaceChildren(bar, make("div", { class: "ends" }, ends[0], about, ends[1]));
  }

  // Before and after, as arrows: of the heads that gained or lost what is shown, then moved most.
  drawChanges() {
    const ends = ["before", "after"].map((end) => this.view.facts.find(([name]) => name === end)?.[1][0]);
    if (!ends[0]) return;
    const { values, marks, words, line } = this.view;
    const size = (k) => Math.abs(values[k] ?? 0) + (marks[k] ? 1e9 : 0);
    const heads = [...values.keys()].filter((k) => values[k] !== null);
    const rows = heads.sort((one, other) => size(other) - size(one)).slice(0, 20).sort((one, other) => one - other);
    const all = rows.flatMap((k) => [ends[0][k], ends[1][k], line]).filter((one) => one !== null);
    const low = Math.min(...all);
    const share = (value) => (100 * (value - low)) / (Math.max(...all) - low || 1);
    const list = rows.map((k) => {
      const [before, after] = ends.map((end) => end[k]);
      const look = `left:${Math.min(share(before), share(after))}%;width:${Math.abs(share(after) - share(before))}%`;
      const arrow = make("i", { class: after < before ? "down" : "up", style: look });
      const track = make("span", { class: "track", "aria-hidden": "true" }, make("b", { style: `left:${share(line)}%` }), arrow);
      const name = `${this.name(k)}${marks[k] ? ` ${marks[k]}` : ""}`;
      return make("li", {}, make("span", {}, name), track, make("span", {}, `${before} to ${after}`));
    });
    const title = make("h3", {}, `${words}: from before to after, the ${rows.length} heads that moved most`);
    this.arrows.replaceChildren(title, make("ul", { class: "tracks" }, ...list));
  }

  // The chosen head: its roles, and sentences with its attention.
  choose(k) {
    this.cells[this.chosen ?? k].removeAttribute("aria-selected");
    this.cells[k].setAttribute("aria-selected", "true");
    this.chosen = k;
    const name = this.name(k);
    const sentences = [...document.querySelectorAll(`article[data-head="${name}"]`)].flatMap((article) => {
      const lines = [...article.querySelectorAll(".sentence")].map((one) => drawArcs(one.cloneNode(true)));
      return [make("h3", {}, article.querySelector("h3").textContent), ...lines];
    });
    const about = sentences.length ? [make("p", { class: "hint" }, "Point at a word to see where it looks.")] : [];
    this.panel.replaceChildren(make("h2", {}, `Head ${name}`), this.table(k), ...about, ...sentences);
  }

  table(k) {
    const found = this.views.filter((view) => this.look(view, k) === "full");
    const views = found.includes(this.view) ? found : [this.view, ...found];
    const names = [...new Set(views.flatMap((view) => this.facts(view, k).map(([name]) => name)))];
    const head = ["role", ...names].map((name) => make("th", { scope: "col" }, name));
    const rows = views.map((view) => {
      const facts = new Map(this.facts(view, k));
      const cells = names.map((name) => make("td", { "data-name": name }, facts.get(name) ?? ""));
      return make("tr", {}, make("th", { scope: "row" }, view.words), ...cells);
    });
    return make("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "roles of the head" }, make("table", { class: names.length > 5 ? "stacked" : "" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)));
  }
}

// Arcs above the words of a sentence, from each word that looks, with an arrow, to the word that it
// looks at. Between lines they leave at the margin, and come in at the other one: text stays free.
function drawArcs(sentence) {
  const arcs = JSON.parse(sentence.dataset.arcs);
  const words = [...sentence.querySelectorAll(":scope > span, :scope > mark")];
  const draw = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const svg = draw("svg", { "aria-hidden": "true" });
  sentence.prepend(svg);
  sentence.classList.add("drawn");
  const hasOwn = arcs.some(([, , , isOwn]) => isOwn);
  const drawAll = (only = null) => {
    const box = sentence.getBoundingClientRect();
    const end = (word) => {
      const { left, width, top } = word.getClientRects()[0];
      return [left + width / 2 - box.left, top - box.top - 1];
    };
    svg.replaceChildren();
    words.forEach((word) => word.classList.remove("lit"));
    for (const [query, key, weight, isOwn] of arcs) {
      if (only === null ? hasOwn && !isOwn : query !== only && key !== only) continue;
      const [from, to] = [end(words[query]), end(words[key])];
      const kind = isOwn ? "own" : "other";
      svg.append(
        draw("path", { d: arcPath(from, to, box.width), "stroke-width": 0.8 + 3 * (weight ?? 0.2), class: kind }),
        draw("polygon", { points: `${to[0] - 4},${to[1] - 6} ${to[0] + 4},${to[1] - 6} ${to[0]},${to[1] + 1}`, class: kind }),
      );
      if (only !== null) [query, key].forEach((place) => words[place].classList.add("lit"));
    }
  };
  words.forEach((word, k) => {
    word.addEventListener("mouseenter", () => drawAll(k));
    word.addEventListener("mouseleave", () => drawAll());
  });
  sentence.addEventListener("click", () => drawAll());
  new ResizeObserver(() => drawAll()).observe(sentence);
  return sentence;
}

// The path of an arc above its words; one between two lines has a part above each.
function arcPath([x1, y1], [x2, y2], width) {
  const rise = Math.min(22, 9 + Math.abs(x2 - x1) / 10);
  if (Math.abs(y1 - y2) < 4) {
    const wide = x1 === x2 ? 5 : 0; // a word that looks at itself
    return `M${x1 - wide},${y1} C${x1 - 2 * wide},${y1 - rise} ${x2 + 2 * wide},${y2 - rise} ${x2 + wide},${y2}`;
  }
  const [out, into] = y1 < y2 ? [width, 0] : [0, width];
  const [above, over] = [y1 - 9, y2 - 9];
  return `M${x1},${y1} Q${x1},${above} ${(3 * x1 + out) / 4},${above} L${out},${above} M${into},${over} L${(3 * x2 + into) / 4},${over} Q${x2},${over} ${x2},${y2}`;
}

for (const holder of document.querySelectorAll(".heads")) {
  new HeadMap(holder, document.querySelector(".panel"));
}
addEventListener("beforeprint", () => document.querySelectorAll("details:not(:has(article))").forEach((one) => (one.open = true)));
