// The map of all heads: choose what it shows, point at a head, open it.
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
const cellsOf = (column) => (Array.isArray(column) ? column : column.at.map((k) => column.texts[k]));
const shown = (value) => (value === null || value === "" ? "-" : String(value));

class Colours {
  // The scale of a view: numbers to colours, and the ink that can be read on them.
  constructor(stops, isSigned, values) {
    this.stops = stops.map((one) => [1, 3, 5].map((at) => parseInt(one.slice(at, at + 2), 16)));
    const numbers = values.filter((one) => one !== null);
    const reach = Math.max(...numbers.map(Math.abs), 0) || 1;
    this.low = isSigned ? -reach : Math.min(0, ...numbers);
    this.high = isSigned ? reach : Math.max(...numbers, this.low);
    if (this.high === this.low) this.high += 1;
  }
  share(value) {
    return (value - this.low) / (this.high - this.low);
  }
  rgb(value) {
    const place = Math.min(1, Math.max(0, this.share(value))) * (this.stops.length - 1);
    const below = Math.min(Math.floor(place), this.stops.length - 2);
    return this.stops[below].map((one, k) => {
      return Math.round(one + (place - below) * (this.stops[below + 1][k] - one));
    });
  }
  static ink(rgb) {
    const [r, g, b] = rgb.map((one) => (one / 255) ** 2.2);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
  }
}

class HeadMap {
  constructor(holder) {
    this.data = JSON.parse(holder.querySelector("script").textContent);
    this.views = this.data.views.map((view) => ({
      ...view,
      values: cellsOf(view.values),
      marks: cellsOf(view.marks),
      facts: view.facts.map(([name, ...columns]) => [name, columns.map(cellsOf)]),
      position: new Set(view.position),
      arrow: view.arrow && view.arrow.map(cellsOf),
    }));
    this.found = new Set(this.data.legend.filter((one) => one[2]).map((one) => one[0]));
    this.view = this.views[0];
    this.active = 0;
    this.last = null;
    this.arrows = make("div", { class: "changes" });
    this.opened = make("div", { class: "opened", role: "region", "aria-label": "opened head" });
    this.opened.hidden = true;
    const side = make("div", { class: "side" });
    this.told = make("p", { class: "told" });
    this.scale = make("div", { class: "scale" });
    side.append(this.told, this.scale, this.legend());
    const both = make("div", { class: "map" }, this.grid(), side);
    holder.append(this.controls(), both, this.arrows, this.opened);
    holder.hidden = false;
    this.list();
  }

  // What can be chosen and hidden.
  controls() {
    const box = make("div", { class: "controls" });
    this.choice = make("select");
    box.append(make("label", {}, `${this.data.choose} `, this.choice));
    this.choice.addEventListener("change", () => this.show(this.views[Number(this.choice.value)]));
    if (this.views.length > 8) {
      this.wanted = make("input", { type: "text", size: 14 });
      this.wanted.addEventListener("input", () => this.list());
      box.append(make("label", {}, `${this.data.choose}s with `, this.wanted));
    }
    const hides = make("fieldset", {}, make("legend", {}, "Show"));
    const add = (text, isOn, isNeeded) => {
      const field = make("input", { type: "checkbox" });
      field.checked = isOn;
      field.addEventListener("change", () => this.list());
      if (isNeeded) hides.append(make("label", {}, field, ` ${text}`));
      return field;
    };
    const has = (test) => this.views.some(test);
    const places = has((one) => one.position.size);
    this.places = add("heads that may only look at a distance", true, places);
    this.others = add("all other heads", true, this.found.size);
    this.common = add("one scale for all", false, this.views.length > 1);
    if (hides.children.length > 1) box.append(hides);
    return box;
  }

  legend() {
    const list = make("ul", { class: "legend" });
    for (const [sign, words] of this.data.legend) {
      list.append(make("li", {}, make("b", {}, sign || "no mark"), ` ${words}`));
    }
    return list;
  }

  // The cells, of which one can be reached by the tabulator, and all by arrows.
  grid() {
    const { layers, heads, title } = this.data;
    const grid = make("div", { role: "grid", class: "grid", "aria-label": title });
    grid.style.setProperty("--heads", heads);
    grid.classList.toggle("many", heads > 16);
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
      cell.addEventListener("click", () => this.open(k));
    });
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
    if (event.key === "Enter" || event.key === " ") this.open(this.active);
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

  value(view, k) {
    const value = view.values[k];
    return this.data.signed && value > 0 ? `+${value}` : shown(value);
  }

  facts(view, k) {
    return view.facts.map(([name, columns]) => {
      return [name, columns.map((column) => shown(column[k])).join(" to ")];
    });
  }

  words(k) {
    const said = this.facts(this.view, k).filter(([, text]) => text !== "-");
    const value = `${this.data.value} ${this.value(this.view, k)}`;
    return [value, ...said.map(([name, text]) => `${name} ${text}`)];
  }

  tell(k) {
    const lines = this.words(k).map((one) => make("span", {}, one));
    this.told.replaceChildren(make("b", {}, `Head ${this.name(k)}`), this.view.words, ...lines);
  }

  // Which views can be chosen now; the one shown stays if it can.
  list() {
    const wanted = (this.wanted?.value ?? "").toLowerCase();
    this.chosen = this.views.filter((one) => {
      return `${one.words} ${one.name}`.toLowerCase().includes(wanted);
    });
    const groups = new Map();
    for (const view of this.chosen) {
      if (!groups.has(view.group)) groups.set(view.group, make("optgroup", { label: view.group }));
      const place = this.views.indexOf(view);
      groups.get(view.group).append(make("option", { value: place }, view.words));
    }
    this.choice.replaceChildren(...groups.values());
    this.show(this.chosen.includes(this.view) ? this.view : this.chosen[0] ?? this.view);
  }

  isHidden(k) {
    const view = this.view;
    if (view.position.has(k)) return !this.places.checked;
    return !this.others.checked && !this.found.has(view.marks[k]);
  }

  show(view) {
    this.view = view;
    this.choice.value = String(this.views.indexOf(view));
    const alike = this.views.filter((one) => one.unit === view.unit);
    const values = this.common.checked ? alike.flatMap((one) => one.values) : view.values;
    const colours = new Colours(this.data.colours, this.data.signed, values);
    this.cells.forEach((cell, k) => {
      const value = view.values[k];
      const isBlank = value === null || this.isHidden(k);
      const rgb = isBlank ? [238, 238, 238] : colours.rgb(value);
      cell.style.background = `rgb(${rgb})`;
      cell.style.color = Colours.ink(rgb);
      cell.textContent = isBlank ? "" : view.marks[k];
      cell.setAttribute("aria-label", `head ${this.name(k)}: ${this.words(k).join("; ")}`);
    });
    this.cells[this.active].tabIndex = 0;
    this.tell(this.last ?? view.best);
    this.drawScale(colours);
    this.drawChanges();
    if (this.last !== null) this.fill(this.last);
  }

  drawScale(colours) {
    const bar = make("div", { class: "bar" });
    bar.style.background = `linear-gradient(to right, ${this.data.colours})`;
    const { arrow, unit } = this.view;
    const line = arrow ? null : this.view.line; // a threshold of means, not of differences
    if (line !== null && line >= colours.low && line <= colours.high) {
      const tick = make("i");
      tick.style.left = `${100 * colours.share(line)}%`;
      bar.append(tick);
    }
    const ends = [colours.low, colours.high].map((one) => make("span", {}, String(+one.toPrecision(3))));
    const about = line === null ? unit : `${unit}; threshold ${line}`;
    this.scale.replaceChildren(bar, make("div", { class: "ends" }, ...ends), about);
  }

  // Before and after, as arrows: of the heads that gained or lost what is shown, then moved most.
  drawChanges() {
    const { arrow, values, marks, words, line } = this.view;
    if (!arrow) return;
    const size = (k) => Math.abs(values[k] ?? 0) + (marks[k] ? 1e9 : 0);
    const heads = [...values.keys()].filter((k) => values[k] !== null && !this.isHidden(k));
    const most = heads.sort((one, other) => size(other) - size(one)).slice(0, 20);
    const rows = most.sort((one, other) => one - other);
    const track = this.tracks(rows.map((k) => [arrow[0][k], arrow[1][k], line]));
    const title = make("h3", {}, `${words}: from before to after, the ${rows.length} heads that moved most`);
    const list = rows.map((k, at) => {
      const sign = marks[k] ? ` ${marks[k]}` : "";
      const text = `${shown(arrow[0][k])} to ${shown(arrow[1][k])}`;
      return make("li", {}, make("span", {}, `${this.name(k)}${sign}`), track[at], make("span", {}, text));
    });
    this.arrows.replaceChildren(title, make("ul", { class: "tracks" }, ...list));
  }

  tracks(rows) {
    const ends = rows.flat().filter((one) => one !== null);
    const low = Math.min(...ends);
    const share = (value) => (100 * (value - low)) / (Math.max(...ends) - low || 1);
    return rows.map(([before, after, line]) => {
      const track = make("span", { class: "track", "aria-hidden": "true" });
      if (line !== null) track.append(make("b", { style: `left:${share(line)}%` }));
      if (before === null || after === null) return track;
      const from = Math.min(share(before), share(after));
      const look = `left:${from}%;width:${Math.abs(share(after) - share(before))}%`;
      track.append(make("i", { class: after < before ? "down" : "up", style: look }));
      return track;
    });
  }

  // One head: all that is shown of it, and its sentences.
  open(k) {
    this.activate(k);
    this.cells[this.last ?? k].removeAttribute("aria-selected");
    this.cells[k].setAttribute("aria-selected", "true");
    this.last = k;
    this.fill(k);
    this.opened.querySelector("h3").focus();
  }

  close() {
    this.opened.hidden = true;
    this.cells[this.last].removeAttribute("aria-selected");
    this.last = null;
    this.cells[this.active].focus();
  }

  fill(k) {
    const title = make("h3", { tabindex: "-1" }, `Head ${this.name(k)}`);
    const button = make("button", { type: "button" }, "close");
    button.addEventListener("click", () => this.close());
    this.opened.onkeydown = (event) => event.key === "Escape" && this.close();
    this.opened.hidden = false;
    this.opened.replaceChildren(title, button, this.table(k), ...this.sentences(k));
  }

  table(k) {
    const rank = (view) => (this.found.has(view.marks[k]) ? 0 : view.marks[k] ? 1 : 2);
    const views = this.chosen.filter((one) => !one.summary && one.values[k] !== null);
    const isCompared = views.some((one) => one.arrow); // whose views have syntax first
    if (!isCompared) views.sort((one, other) => rank(one) - rank(other));
    const names = [...new Set(views.flatMap((one) => one.facts.map((fact) => fact[0])))];
    const track = this.tracks(views.map((one) => (one.arrow ? [...one.arrow.map((a) => a[k]), one.line] : [null, null, null])));
    const columns = [this.data.choose.toLowerCase(), "", this.data.value, ...names];
    const head = columns.map((name) => make("th", { role: "columnheader", scope: "col" }, name || "mark"));
    const rows = views.map((view, at) => {
      const facts = new Map(this.facts(view, k));
      const texts = [view.marks[k], this.value(view, k), ...names.map((name) => facts.get(name) ?? "")];
      const cells = texts.map((text, place) => {
        const name = columns[place + 1] || "mark";
        return make("td", { role: "cell", "data-name": name }, text === "-" ? "" : text);
      });
      const first = make("th", { role: "rowheader", scope: "row" }, view.words);
      if (view.arrow) first.append(track[at]);
      return make("tr", { role: "row" }, first, ...cells);
    });
    const caption = make("caption", {}, `All that is known of head ${this.name(k)}`);
    return make(
      "table",
      { role: "table" },
      caption,
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...head)),
      make("tbody", { role: "rowgroup" }, ...rows),
    );
  }

  sentences(k) {
    const quoted = this.data.quoted[this.name(k)] ?? [];
    if (!quoted.length) return [];
    const about = "Sentences. b ← a 0.62: word a gives word b 0.62 of its attention; bold: an arc of the role.";
    const list = quoted.map(([role, score, words, keys, arcs]) => {
      const spans = words.map((word, at) => make(keys.includes(at) ? "mark" : "span", {}, word));
      const line = spans.flatMap((one) => [one, " "]);
      const told = arcs.map(([query, key, weight, isOwn]) => {
        const text = `${words[key]} ← ${words[query]}${weight === null ? "" : ` ${weight.toFixed(2)}`}`;
        const arc = make(isOwn ? "b" : "span", {}, text);
        const light = (isOn) => [query, key].forEach((at) => spans[at].classList.toggle("lit", isOn));
        arc.addEventListener("mouseenter", () => light(true));
        arc.addEventListener("mouseleave", () => light(false));
        return arc;
      });
      const below = make("div", { class: "arcs" }, ...told.flatMap((one) => [one, " "]));
      return make("li", {}, make("b", {}, `${role}, ${score}`), ": ", ...line, below);
    });
    return [make("p", {}, about), make("ul", { class: "sentences" }, ...list)];
  }
}

for (const holder of document.querySelectorAll(".heads")) {
  new HeadMap(holder);
  const still = holder.nextElementSibling;
  still.open = false;
  addEventListener("beforeprint", () => (still.open = true));
}
