const wait = milliseconds => new Promise(done => setTimeout(done, milliseconds));
const errors = [];
addEventListener("error", event => errors.push(String(event.message)));
addEventListener("securitypolicyviolation", event => errors.push("policy: " + event.violatedDirective));
const visible = e => e.getAttribute("visibility") !== "hidden" && e.textContent.trim() !== "";
function overlaps() {
  const found = [];
  for (const svg of document.querySelectorAll("svg")) {
    const texts = [...svg.querySelectorAll("text")].filter(visible).map(e => [e.textContent, e.getBoundingClientRect()]);
    texts.forEach(([a, p], i) => texts.slice(i + 1).forEach(([b, q]) => {
      const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (across > 1 && down > 3) found.push(`${svg.id}: ${a} on ${b}`);
    }));
    const whole = svg.getBoundingClientRect();
    for (const [a, p] of texts)
      if (p.left < whole.left - 2 || p.right > whole.right + 2 || p.bottom > whole.bottom + 2)
        found.push(`${svg.id}: ${a} leaves it`);
  }
  return found;
}
// Formulas whose parts stand below one another instead of side by side.
const stacked = () => [...document.querySelectorAll("math")].filter(e => {
  const row = e.children.length === 1 && e.firstElementChild.localName === "mrow" ? e.firstElementChild : e;
  const parts = [...row.children].map(part => part.getBoundingClientRect()).filter(box => box.width > 0);
  return parts.some((box, i) => i && box.left < parts[i - 1].right - 2);
}).map(e => e.textContent);
const numbers = () =>
  [...document.querySelectorAll("data")].map(e => [e.dataset.of, e.dataset.as ?? "size", e.getAttribute("value"), e.textContent]);
const state = () => ({
  width: innerWidth, wide: document.documentElement.scrollWidth, overlaps: overlaps(), stacked: stacked(), numbers: numbers(),
  status: document.getElementById("status").textContent,
  values: Object.fromEntries([...document.querySelectorAll("[data-number]")].map(e => [e.dataset.number, e.value])),
  thresholds: Object.fromEntries(
    [...document.querySelectorAll("[data-threshold]")].map(e => [e.dataset.threshold, e.textContent])
  ),
});
addEventListener("load", async () => {
  const out = {states: [], computed: [], formats: []};
  await wait(150);
  out.states.push(state());
  for (const moves of ASKED.moves) {
    for (const [key, place] of Object.entries(moves)) {
      const range = [...document.querySelectorAll("[data-slider]")].find(e => e.dataset.slider === key);
      range.value = place;
      range.dispatchEvent(new Event("input"));
    }
    await wait(150);
    out.states.push(state());
  }
  const field = document.querySelector("[data-number]");
  field.value = "1.5";
  field.dispatchEvent(new Event("input"));
  out.refused = field.getAttribute("aria-invalid");
  document.getElementById("reset").click();
  await wait(150);
  out.states.push(state());
  for (const [key, at] of ASKED.points) {
    try { out.computed.push(derive.value(key, at)); } catch (error) { out.computed.push(error.message); }
  }
  for (const [as, exact] of ASKED.formats) out.formats.push(derive.format(as, exact));
  out.errors = errors;
  parent.postMessage(JSON.stringify(out), "*");
});
