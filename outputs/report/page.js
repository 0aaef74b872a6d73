const all = query => [...document.querySelectorAll(query)];
const stepsOf = slider => data.steps[slider.steps];
const read = text => { const [p, q] = text.split("/"); return ratio(BigInt(p), BigInt(q ?? "1")); };
const write = x => typeof x === "bigint" ? String(x) : `${x.p}/${x.q}`;
const grouped = x => String(floor(x, 1n)).replace(/\B(?=(\d{3})+$)/g, ",");
const float = x => {
  if (typeof x === "bigint") return Number(x);
  const shift = BigInt(Math.max(0, 70 + String(x.q).length * 4 - String(x.p).length * 3));
  return Number((x.p << shift) / x.q) / 2 ** Number(shift);
};
// Half to even to so many significant digits: the digits, and the power of ten of the first.
function rounded(x, digits) {
  let [p, q] = [top(x), bottom(x)], first = 0;
  while (p >= 10n * q) { q *= 10n; first++; }
  while (p < q) { p *= 10n; first--; }
  const scale = 10n ** BigInt(digits - 1);
  let whole = p * scale / q, rest = 2n * (p * scale - whole * q);
  if (rest > q || (rest === q && whole % 2n === 1n)) whole++;
  if (whole >= 10n * scale) { whole /= 10n; first++; }
  return [String(whole), first];
}
function significant(x, digits = 4) {
  if (typeof x === "bigint" && x > -1000000n && x < 1000000n) return grouped(x);
  const [whole, first] = rounded(x, digits);
  if (first >= 6 || first < -4)
    return `${whole[0]}.${whole.slice(1)}e${first < 0 ? "-" : "+"}${Math.abs(first)}`;
  const after = Math.max(0, digits - 1 - first);
  const plain = first >= digits ? whole.padEnd(first + 1, "0") : whole.padStart(after + 1, "0");
  return after ? `${plain.slice(0, plain.length - after)}.${plain.slice(plain.length - after)}` : plain;
}
function stepped(x, by, units) {
  let step = 0;
  while (atMost(by, x) && step < units.length - 1) { x = over(x, by); step++; }
  return [x, step];
}
function size(x) {
  const [scaled, step] = stepped(x, 1024n, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
  return step ? `${significant(scaled)} ${["", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][step]}` : `${grouped(x)} B`;
}
const decimal = unit => x => {
  const [scaled, step] = stepped(x, 1000n, ["", "k", "M", "G", "T", "P", "E"]);
  return `${significant(scaled)} ${["", "k", "M", "G", "T", "P", "E"][step]}${unit}`;
};
function seconds(x) {
  const units = [["s", 1n], ["ms", 1000n], ["us", 1000000n], ["ns", 1000000000n]];
  const [unit, scale] = units.find(([, scale]) => atMost(1n, mul(x, scale))) ?? units[3];
  return `${significant(mul(x, scale))} ${unit}`;
}
const formats = {
  size, seconds, whole: x => grouped(ceil(x, 1n)), flop: decimal("FLOP"), rate: decimal("FLOP/s"), number: x => significant(x),
};

const schedules = Object.keys(data.values);
const beginning = Object.fromEntries(data.sliders.map(s => [s.key, read(s.value)]));
let chosen = {...beginning};
let points = {};
function valuesOf(schedule, more = {}) {
  const values = Object.fromEntries(Object.entries({...data.shared, ...data.values[schedule]}).map(([n, text]) => [n, read(text)]));
  for (const s of data.sliders)
    if (!s.schedule || s.schedule === schedule) values[s.symbol] = chosen[s.key];
  return {...values, ...more, $: []};
}
function amount(of, more) {
  const [schedule] = of.split("|");
  return evaluate(of, more ? valuesOf(schedule, more) : points[schedule]);
}
const place = ([low, high, start, end], x) => {
  if (!(x > 0)) return start;
  const share = (Math.log2(x) - Math.log2(low)) / (Math.log2(high) - Math.log2(low));
  return Math.round(100 * (start + Math.min(Math.max(share, -0.1), 1.1) * (end - start))) / 100;
};
// The last length up to which what is live fits: powers of two, then halves; row tile by row tile where the live slices vary.
function threshold(schedule) {
  const {symbol, scan} = data.thresholds[schedule];
  const {C_L2: room, B_r: rows} = points[schedule];
  if (atMost(amount(`${schedule}|readers`), 1n)) return null;
  const fits = n => atMost(amount(`${schedule}|live`, {[symbol]: n}), room);
  const last = (low, high) => {
    while (high - low > 1n) { const middle = (low + high) / 2n; if (fits(middle)) low = middle; else high = middle; }
    return low;
  };
  let end = 1n;
  while (fits(end)) { end *= 2n; if (end > 2n ** 90n) return null; }
  const step = scan ? rows : end;
  for (let tile = 1n; tile <= min(ceil(end, step), 4096n); tile++)
    if (!fits(tile * step)) return last((tile - 1n) * step, tile * step);
  return last(0n, end);
}
function text(element, words) { if (element.textContent !== words) element.textContent = words; }

// An amount, or null where it is not computed here; why not is said once, in the status.
let reason = "";
function tried(of) {
  try { return amount(of); } catch (error) { reason = error.message; return null; }
}
// Each bar is of the tensor named last before it; its number stands behind it.
const bars = all(".bars rect").map(bar => {
  let name = bar;
  while (!name.matches(".tensor")) name = name.previousElementSibling;
  const of = `${bar.parentElement.dataset.schedule}|${bar.className.baseVal}.${name.textContent}`;
  return {bar, label: bar.nextElementSibling, of};
});
function numbers() {
  for (const element of all("[data-of]")) {
    const exact = tried(element.dataset.of);
    text(element, exact === null ? "not computed" : formats[element.dataset.as ?? "size"](exact));
    if (element.localName === "data") element.setAttribute("value", exact === null ? "" : write(exact));
  }
  for (const {label, of} of bars) {
    const exact = tried(of);
    text(label, exact === null ? "not computed" : size(exact));
  }
  for (const element of all("[data-verdict]")) {
    const name = element.dataset.verdict, found = tried(`${name}|intensity`);
    text(element, found === null ? "not computed" : atMost(read(data.ridge[name]), found) ? "compute-bound" : "bandwidth-bound");
  }
  for (const element of all("[data-fits]"))
    text(element, atMost(amount(`${element.dataset.fits}|footprint`), read(data.room)) ? "fits" : "does not fit");
}
function drawBars() {
  const amounts = bars.map(({of}) => float(tried(of) ?? 0n));
  const largest = Math.max(1e-9, ...amounts);
  bars.forEach(({bar, label}, n) => {
    const length = Math.round(100 * data.longest * amounts[n] / largest) / 100;
    bar.setAttribute("width", length);
    label.setAttribute("x", Math.round(100 * (length + 5)) / 100);
  });
}
function drawRoof() {
  for (const element of all("[data-dot]")) {
    const [schedule, across, up] = element.dataset.dot.split("|");
    const found = [tried(`${schedule}|${across}`), tried(`${schedule}|${up}`)];
    element.setAttribute("visibility", found.includes(null) ? "hidden" : "visible");
    if (found.includes(null)) continue;
    element.setAttribute("transform", `translate(${place(data.roof.x, float(found[0]))} ${place(data.roof.y, float(found[1]))})`);
  }
}
function drawLengths() {
  const {symbol, at, longest, x, y, middle} = data.lengths;
  const limits = Object.fromEntries(Object.keys(data.thresholds).map(name => [name, threshold(name)]));
  const low = BigInt(at[0]), high = BigInt(at.at(-1));
  const extra = Object.values(limits).filter(n => n !== null && n >= low && n < high).flatMap(n => [n, n + 1n]);
  const lengths = [...at.map(BigInt), ...extra].sort((a, b) => a < b ? -1 : 1);
  const known = (of, n) => {
    if (n > BigInt(longest[of])) return null;
    try { return float(amount(of, {[symbol]: n})); } catch { return null; }
  };
  for (const element of all("[data-line]")) {
    const found = [];
    for (const n of lengths) {
      const bytes = known(element.dataset.line, n);
      if (bytes === null) break;
      found.push(`${place(x, Number(n))},${place(y, bytes)}`);
    }
    element.setAttribute("points", found.join(" "));
  }
  for (const element of all("[data-mark]")) {
    const bytes = known(element.dataset.mark, BigInt(element.dataset.at));
    element.setAttribute("visibility", bytes === null ? "hidden" : "visible");
    if (bytes !== null)
      element.setAttribute("transform", `translate(${place(x, Number(element.dataset.at))} ${place(y, bytes)})`);
  }
  for (const [name, n] of Object.entries(limits)) {
    for (const element of all("[data-threshold]"))
      if (element.dataset.threshold === name) text(element, n === null ? "any length" : grouped(n));
    for (const group of all("[data-limit]")) {
      if (group.dataset.limit !== name) continue;
      group.setAttribute("visibility", n === null ? "hidden" : "visible");
      if (n === null) continue;
      const where = place(x, Number(min(max(n, low), high)));
      const [line, label] = group.children;
      for (const end of ["x1", "x2"]) line.setAttribute(end, where);
      const left = where < middle;
      label.setAttribute("text-anchor", left ? "start" : "end");
      label.setAttribute("x", where + (left ? 3 : -3));
      text(label, `${name}: ${grouped(n)}${n > high ? " (beyond)" : n < low ? " (before)" : ""}`);
    }
  }
}
function drawMaps() {
  for (const map of data.maps) {
    const picture = document.getElementById(map.name), [left, right, low, high] = map.box;
    const values = {...points[schedules[0]], M: points[schedules[0]].M ?? read(map.memory)};
    const log = name => Math.log2(float(values[name]));
    const frame = data.frame;
    const x = n => place([2 ** left, 2 ** right, frame.left, frame.right], 2 ** n);
    const y = n => place([2 ** low, 2 ** high, frame.bottom, frame.top], 2 ** n);
    const taken = [];
    map.regions.forEach((sides, n) => {
      let corners = [[left, low], [right, low], [right, high], [left, high]];
      for (const [across, up, others] of sides) {
        const kept = Object.entries(others).reduce((total, [name, e]) => total + e * log(name), 0);
        const inside = ([a, b]) => across * a + up * b + kept;
        corners = corners.flatMap((a, i) => {
          const b = corners[(i + 1) % corners.length], [here, there] = [inside(a), inside(b)], found = here >= 0 ? [a] : [];
          if ((here >= 0) !== (there >= 0)) {
            const share = here / (here - there);
            found.push([a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])]);
          }
          return found;
        });
      }
      corners = corners.map(([a, b]) => [x(a), y(b)]);
      picture.querySelector(`[data-region="${n}"]`).setAttribute("points", corners.map(corner => corner.join(",")).join(" "));
      const number = picture.querySelector(`[data-middle="${n}"]`);
      const middle = [0, 1].map(axis => corners.reduce((total, c) => total + c[axis], 0) / corners.length);
      const tried = corners.length ? [middle, ...corners.map(([a, b]) => [(a + middle[0]) / 2, (b + middle[1]) / 2])] : [];
      const free = tried.find(p => taken.every(q => Math.abs(p[0] - q[0]) >= 16 || Math.abs(p[1] - q[1]) >= 16));
      number.setAttribute("visibility", free ? "visible" : "hidden");
      if (!free) return;
      taken.push(free);
      number.setAttribute("x", free[0].toFixed(2));
      number.setAttribute("y", (free[1] + 4).toFixed(2));
    });
    picture.querySelector("[data-here]").setAttribute("transform", `translate(${x(log("M"))} ${y(log(map.other))})`);
    const caption = picture.parentElement.querySelector("[data-caption]");
    text(caption, `${caption.textContent.split(";")[0]}; the cross: M = ${grouped(values.M)}, ${map.other} = ${grouped(values[map.other])}`);
  }
}
function broken() {
  for (const schedule of schedules)
    for (const [small, large] of data.divides) {
      const {[small]: a, [large]: b} = points[schedule];
      if (a !== undefined && b !== undefined && b % a !== 0n) return `${small} = ${a} does not divide ${large} = ${b}`;
    }
  return "";
}
let later = 0;
function follow() {
  points = Object.fromEntries(schedules.map(schedule => [schedule, valuesOf(schedule)]));
  const status = document.getElementById("status");
  const wrong = broken();
  if (wrong) { text(status, `${wrong}: the numbers are those from before.`); return; }
  reason = "";
  numbers();
  drawBars();
  if (data.roof) drawRoof();
  drawMaps();
  text(status, reason && `Some numbers are not computed here: ${reason}.`);
  clearTimeout(later);
  if (data.lengths) later = setTimeout(drawLengths, 60);
}
function set(slider, exact, from) {
  chosen[slider.key] = exact;
  const range = all("[data-slider]").find(e => e.dataset.slider === slider.key);
  const field = all("[data-number]").find(e => e.dataset.number === slider.key);
  const steps = stepsOf(slider).map(read);
  if (from !== range) range.value = Math.max(0, steps.findLastIndex(step => atMost(step, exact)));
  range.setAttribute("aria-valuetext", write(exact));
  if (from !== field) field.value = write(exact);
  field.removeAttribute("aria-invalid");
}
function typed(slider, words) {
  const found = /^\s*(\d{1,25})(?:\/(\d{1,25}))?\s*$/.exec(words);
  if (!found || (found[2] && BigInt(found[2]) === 0n)) return null;
  const exact = read(found[2] ? `${found[1]}/${found[2]}` : found[1]);
  if (slider.whole && typeof exact !== "bigint") return null;
  if (slider.whole ? below(exact, read(slider.least)) : atMost(exact, 0n)) return null;
  return slider.symbol === "s" && below(1n, exact) ? null : exact;
}
for (const slider of data.sliders) {
  const range = all("[data-slider]").find(e => e.dataset.slider === slider.key);
  const field = all("[data-number]").find(e => e.dataset.number === slider.key);
  range.addEventListener("input", () => { set(slider, read(stepsOf(slider)[range.value]), range); follow(); });
  field.addEventListener("input", () => {
    const exact = typed(slider, field.value);
    if (exact === null) { field.setAttribute("aria-invalid", "true"); return; }
    set(slider, exact, field);
    follow();
  });
}
document.getElementById("controls").addEventListener("submit", event => event.preventDefault());
document.getElementById("reset").addEventListener("click", () => {
  for (const slider of data.sliders) set(slider, beginning[slider.key], null);
  follow();
});
document.getElementById("controls").hidden = false;
globalThis.derive = {
  forms: Object.keys(forms),
  value: (key, at) => write(evaluate(key, Object.fromEntries(Object.entries(at).map(([n, text]) => [n, read(String(text))])))),
  threshold: name => { const n = threshold(name); return n === null ? null : write(n); },
  format: (as, exact) => formats[as](read(exact)),
};
follow();
