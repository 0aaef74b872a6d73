// Exact numbers: a BigInt, or a reduced fraction {p, q} of two with q > 1. Nothing is ever rounded here.
const top = x => typeof x === "bigint" ? x : x.p;
const bottom = x => typeof x === "bigint" ? 1n : x.q;
const divisor = (a, b) => { while (b) [a, b] = [b, a % b]; return a < 0n ? -a : a; };
const down = (a, b) => { const whole = a / b; return a % b !== 0n && (a < 0n) !== (b < 0n) ? whole - 1n : whole; };
function ratio(p, q) {
  if (q === 0n) throw new RangeError("a division by zero");
  if (q < 0n) [p, q] = [-p, -q];
  const common = divisor(p, q);
  return q === common ? p / q : {p: p / common, q: q / common};
}
function add(...terms) {
  let total = 0n;
  for (const x of terms)
    total = typeof x === "bigint" && typeof total === "bigint" ? total + x
      : ratio(top(total) * bottom(x) + top(x) * bottom(total), bottom(total) * bottom(x));
  return total;
}
function mul(...factors) {
  let product = 1n;
  for (const x of factors)
    product = typeof x === "bigint" && typeof product === "bigint" ? product * x
      : ratio(top(product) * top(x), bottom(product) * bottom(x));
  return product;
}
const over = (a, b) => ratio(top(a) * bottom(b), bottom(a) * top(b));
const power = (x, n) => typeof x === "bigint" ? x ** BigInt(n) : ratio(x.p ** BigInt(n), x.q ** BigInt(n));
function floor(a, b) {
  if (top(b) === 0n) throw new RangeError("a division by zero");
  return down(top(a) * bottom(b), bottom(a) * top(b));
}
const ceil = (a, b) => -floor(typeof a === "bigint" ? -a : {p: -a.p, q: a.q}, b);
const below = (a, b) => top(a) * bottom(b) < top(b) * bottom(a);
const atMost = (a, b) => !below(b, a);
const equal = (a, b) => top(a) === top(b) && bottom(a) === bottom(b);
const same = (a, b) => equal(a, b) ? 1n : 0n;
const min = (...numbers) => numbers.reduce((a, b) => below(b, a) ? b : a);
const max = (...numbers) => numbers.reduce((a, b) => below(a, b) ? b : a);
const mod = (a, n) => add(a, mul(-1n, n, floor(a, n)));
const gcd = (a, b) => divisor(floor(a, 1n), floor(b, 1n));
const steps = (x, starts, values) => values[Math.max(0, starts.findLastIndex(start => atMost(start, x)))];
// Of the tile pairs that meet a listed block how many there are, or the rows, keys or pairs in them; block numbers rise in a row.
function met(what, rows, keys, rowTile, keyTile, rowBlock, keyBlock, kept) {
  const least = (a, b) => a < b ? a : b, united = spans => {
    const found = [];
    for (const [first, past] of spans)
      if (found.length && first <= found.at(-1)[1]) { if (past > found.at(-1)[1]) found.at(-1)[1] = past; }
      else if (first < past) found.push([first, past]);
    return found;
  };
  const ofKeys = what === "keys" || what === "pairs", ofRows = what === "rows" || what === "pairs";
  const trips = ceil(rows, rowTile), last = kept.length - 1;
  let total = 0n;
  for (let i = 0n, next; i < trips; i = next) {
    const top = i * rowTile / rowBlock, bottom = (least((i + 1n) * rowTile, rows) - 1n) / rowBlock;
    next = least(least(ceil((top + 1n) * rowBlock, rowTile), (bottom + 1n) * rowBlock / rowTile), trips);
    if (next <= i) next = i + 1n;
    if (i < trips - 1n) next = least(next, trips - 1n);
    const from = Math.min(Number(top), last), to = Math.min(Number(bottom), last);
    const seen = [...new Set(kept.slice(from, to + 1).flat())].sort((a, b) => a - b).map(BigInt);
    const spans = united(seen.map(key => [key, key + 1n]))
      .map(([a, z]) => [a * keyBlock / keyTile, ceil(least(z * keyBlock, keys), keyTile)]);
    let across = 0n;
    for (const [a, z] of united(spans)) across += ofKeys ? least(z * keyTile, keys) - a * keyTile : z - a;
    total += across * (ofRows ? least(next * rowTile, rows) - i * rowTile : next - i);
  }
  return total;
}
const MOST_TERMS = 200000;
let termsLeft = MOST_TERMS;
function sum(first, last, term) {
  let total = 0n;
  for (let i = ceil(first, 1n); i <= last; i++) {
    if (termsLeft-- <= 0) throw new RangeError(`a sum of more than ${MOST_TERMS} terms: too long for this page`);
    total = add(total, term(i));
  }
  return total;
}
// Forms by group and amount, as forms by one name.
const flat = groups => Object.fromEntries(
  Object.entries(groups).flatMap(([group, of]) => Object.entries(of).map(([amount, form]) => [group + amount, form])));
// What a form is a function of: v.N is a number of the question, v(12) the value of part 12, computed when first asked for.
function inputs(values) {
  const known = values.$ ?? [], v = Object.assign(n => known[n] ?? (known[n] = parts[n](v)), values);
  return v;
}
function evaluate(key, values) {
  termsLeft = MOST_TERMS;
  const v = inputs(values), form = forms[key];
  return typeof form === "number" ? v(form) : form(v);
}
