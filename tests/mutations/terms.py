# ruff: noqa: E501  (one mutation a line)
"""The mutations that are no clause of a rule: (file, exact old text, new text, what it breaks, tests to run)."""

from __future__ import annotations

TRAFFIC = ("tests/derive/test_traffic.py", "tests/rules/test_interchange.py", "tests/rules/test_skip_masked.py")
RESIDENCY = ("tests/derive/test_residency.py", "tests/rules/test_keep_resident.py")
EXACT = ("tests/derive/test_exact.py",)
PASSES = ("tests/derive/test_passes.py", "tests/rules")
FLOPS = ("tests/derive/test_flops.py", "tests/derive/test_traffic.py")
MASK = ("tests/derive/test_mask.py", "tests/derive/test_traffic.py")
EXECUTE = ("tests/derive/test_execute.py",)
HARDWARE = ("tests/hardware",)
FOOTPRINT = ("tests/derive/test_footprint.py",)
TILES = ("tests/derive/test_staging.py", "tests/outputs/test_tiles.py", "tests/published/test_tiles.py")
ALGEBRA = ("tests/rules",)
GROWN = "tests/derive/growth/test_"

T, COVERAGE, SHARING = "derive/traffic.py", "derive/covered.py", "derive/sharing.py"
RESIDENT, FLOP, EXECUTES, CONSTANT = (
    "derive/residency.py",
    "derive/flops.py",
    "derive/execute.py",
    "hardware/constant.py",
)

PAGED = ("tests/derive/test_paged.py",)
PLACES, PLACE = "derive/places.py", ("tests/derive/test_places.py",)
CHUNKS, CHUNK = "rules/algebra/chunk_recurrence.py", ("tests/rules/test_chunk_recurrence.py",)
DIFFERENTIATE = ("tests/derive/test_differentiate.py",)
D = "derive/differentiate.py"

TERMS: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    # the re-read rule
    (T, "and not loop.carried_by(tensor) and not once", "and not once", "loops that carry a tensor repeat it", TRAFFIC),
    (T, "repeats *= loop.trips", "repeats *= 1", "no loop repeats a tensor", TRAFFIC),
    (T, "[(amount(kernel.grid), sp.true)]", "[(amount(()), sp.true)]", "CTAs share a fast memory", TRAFFIC),
    (T, "kernel.loops.index(loop) + 1]", "kernel.loops.index(loop) + 2]", "the prefix ends one loop late", TRAFFIC),
    (T, "loop.extent > loop.tile", "loop.extent >= loop.tile", "one trip counts as several", TRAFFIC),
    (T, "- (0 if kernel.in_memory else once)", "- once", "memory-held partial sums skip the first read", TRAFFIC),
    (T, "- (0 if kernel.in_memory else once)", "", "the first visit is always read", TRAFFIC),
    (T, "return whole if leaves else sp.Integer(0)", "return sp.Integer(0)", "finished outputs unwritten", TRAFFIC),
    (T, "(whole - once if leaves else 0)", "0", "outputs that no tile visits are unwritten", TRAFFIC),
    (T, "(0 if leaves or kept else once)", "0", "the last visit of a private partial sum is written", TRAFFIC),
    (T, "and not finished_in_place(schedule, kernel, tensor)", "", "O does not take the place of U", TRAFFIC),
    (T, "keys = met.key_rows if rows_vary else met.key_rows_once", "keys = met.key_rows", "keys met once a row", TRAFFIC),
    (T, "rows = _query_rows(prefix, tensor, met) if keys_vary else met.query_rows_once", "rows = _query_rows(prefix, tensor, met)", "rows met once", TRAFFIC),
    (T, "cases((met.query_rows, sp.Eq(between, 1)), (met.query_rows_met, sp.true))", "met.query_rows", "the last tile stays although heads come between", TRAFFIC),
    (T, "mask.rows_touched if index == mask.row else mask.keys_touched", "extent", "compulsory ignores masks", TRAFFIC),
    # rows that lie in pages
    ("derive/page_entries.py", "Gcd(page, run)", "sp.Integer(1)", "every boundary of a part straddles a page", PAGED),
    ("derive/page_entries.py", "cut[0].trips - 1 - down", "cut[0].trips - down", "one boundary too many is straddled", PAGED),
    ("derive/page_tables.py", "1 + up((sp.Mul", "up((sp.Mul", "a tile begins where a page does", PAGED),
    ("derive/page_tables.py", "replace(rows, name=tensor.name, width=tensor.width)", "tensor", "a pool is shared whole", PAGED),
    (T, "rows *= paging.extent / (paging.entry.extent * paging.row.extent)", "rows *= sp.Integer(1)", "the last page is read whole", PAGED),
    ("derive/selection.py", "number % size", "number * 0", "a page has one row", PAGED),
    ("rules/schedule/pack_heads.py", "if t.name not in tabled", "", "heads are packed to share a table", PAGED),
    # places of selected keys
    (PLACES, "return found + least(ragged, self.columns) * past", "return found", "queries past the last key see none of its chunk", PLACE),
    (PLACES, "return rising + falling - top * self.rows", "return rising", "no window is cut short at the end", PLACE),
    (PLACES, "m * (m + 1) / 2 + self.columns * (length - m)", "m * (m + 1) / 2", "no query sees more than it selects", PLACE),
    (PLACES, "seen -= most(self._left_in_the_first_chunk(*chunk), ZERO)", "pass", "the first chunk's queries select all of it", PLACE),
    (T, "rows = selected.most_apart", "pass", "compulsory rows are places or keys, whichever are fewer", PLACE),
    # chunks of a recurrence
    (CHUNKS, "Map.MUL, Reduce.SUM, mask),\n        Einsum(y,", "Map.MUL, Reduce.SUM),\n        Einsum(y,", "scores of a chunk are whole squares", CHUNK),
    (CHUNKS, "not set(answer.reduced) <= set(t.indices)", "set(answer.reduced) <= set(t.indices)", "values take the place of keys", CHUNK),
    # parts of the keys in a backward pass
    (T, "tensor.size * repeats if once else size * repeats * met.parts_met", "tensor.size * repeats", "parts share what no tile cuts", ("tests/rules/test_split_sums.py",)),
    ("rules/algebra/split_sums.py", "if ROW in {i.name for i in e.space}", "", "sums without queries have copies too", ("tests/rules/test_split_sums.py",)),
    ("derive/operators.py", "np.arange(prod(shape), dtype=np.float64).reshape(shape)", "np.arange(prod(shape), dtype=np.float64).reshape(shape) % shape[-1]", "positions start again in each part", ("tests/rules/test_every_rule.py",)),
    (SHARING, "again, once = self.meetings * self.sweeps, self.slices", "again, once = self.meetings, self.slices", "what is swept again is read once a wave", ("tests/rules/test_split_sums.py",)),
    (SHARING, "self.live * self.step_bytes + self.beside_step + self.others", "self.live * self.step_bytes", "tiles of their own need no room in a step", ("tests/rules/test_split_sums.py",)),
    # gradients
    (D, "e.map is Map.NEG or (e.map is Map.SUB and position == 1)", "e.map is Map.NEG", "a subtrahend's gradient keeps its sign", DIFFERENTIATE),
    (D, "(self._emit(product, (d, e.output), Map.MUL, e), e.inputs[1]), True", "(self._emit(product, (d, e.output), Map.MUL, e), e.inputs[1]), False", "a divisor's gradient keeps its sign", DIFFERENTIATE),
    (D, "return Map.MUL, (d, e.output), False", "return Map.MUL, (d, e.inputs[0]), False", "exp has another derivative", DIFFERENTIATE),
    (D, "if not repeats and not set(e.space) <= bound:", "if False:", "what is repeated along a summed index is counted once", DIFFERENTIATE),
    (D, "mask = of.domain if of.domain and", "mask = None if of.domain and", "gradients ignore the mask", DIFFERENTIATE),
    (D, "Map.SUB if part.negative != total.negative else Map.ADD", "Map.ADD", "negative gradients are added", DIFFERENTIATE),
    (D, "if e.reduce is Reduce.MAX and not shift_cancels(forward, e):", "if False:", "any maximum is held fixed", DIFFERENTIATE),
    (D, "mixes_rows = bool(carried & {i.name for i in e.reduced})", "mixes_rows = False", "a maximum a row cancels in a sum over rows", DIFFERENTIATE),
    (D, "sums_shifts = e.reduce is Reduce.SUM and found.shift != 0", "sums_shifts = False", "a sum of shifts is one shift", DIFFERENTIATE),
    ("derive/footprint.py", "live = [t.size * t.width for t in spilled(schedule, kernel)]", "live = []", "partial sums in memory need no room", ("tests/derive/test_footprint.py", "tests/published/test_backward.py")),
    # tiles under a mask
    (COVERAGE, "self.rows.extent) - 1)", "self.rows.extent))", "one row past the tile", TRAFFIC),
    (COVERAGE, "return first, self.mask.rows - 1", "return first, self._query((i + 1) * self.rows.tile - 1)", "the last row tile is not cut", TRAFFIC),
    (COVERAGE, "row if self._heads == 1 else down(row / self._heads)", "row", "packed heads are queries", TRAFFIC),
    (COVERAGE, "past = up(end / self.keys.tile)", "past = down(end / self.keys.tile)", "the diagonal tile is skipped", TRAFFIC),
    (COVERAGE, "return self.query_rows_met - stays * (self.rows.extent - self.rows.tile * last)", "return self.query_rows_met", "the last row tile never stays", TRAFFIC),
    (COVERAGE, "- most(self.tiles_of(last - 1), sp.Integer(1)), sp.Integer(0))", "- self.tiles_of(last - 1), sp.Integer(0))", "the first visit counts as staying", TRAFFIC),
    (COVERAGE, "self.rows.extent - self.rows.tile * down(blind / self.rows.tile)", "self.rows.extent - blind", "blind rows of a met tile are not loaded", TRAFFIC),
    (COVERAGE, "blind = self.mask.rows_blind_above * self._heads\n            seen = self.rows.extent - self.rows.tile * down(blind / self.rows.tile)\n            return", "blind = self.mask.rows_blind_above\n            seen = self.rows.extent - self.rows.tile * down(blind / self.rows.tile)\n            return", "blind rows have one head", TRAFFIC),
    (COVERAGE, "least(self.keys.tile * up(end / self.keys.tile), self.keys.extent)", "self.keys.tile * up(end / self.keys.tile)", "the last key tile is not cut", TRAFFIC),
    (COVERAGE, "- missing * weight(self.rows.trips - 1)", "", "a ragged row tile is whole", TRAFFIC),
    # the wave model
    (SHARING, "return least(self.caches, self.sharers * per_round)", "return self.caches", "every cache holds every slice", RESIDENCY),
    (SHARING, "self.caches / Gcd(self.caches, self.sharers * self.slices)", "self.caches", "rounds reach every cache", RESIDENCY),
    (SHARING, "most(down(C / self.caches), sp.Integer(1))", "C", "each cache runs all CTAs", RESIDENCY),
    (SHARING, "return up(self.sharers / self.caches)", "return self.sharers", "sharers are not dealt", RESIDENCY),
    (SHARING, "if self.rounds != 1:\n            return self.slices\n", "", "a round's slices die with the wave", RESIDENCY),
    (SHARING, "2 + down((running - Gcd(running, n) - 1) / n)", "1 + down((running - Gcd(running, n) - 1) / n)", "a wave touches a slice less", RESIDENCY),
    (SHARING, "2 + down((running - Gcd(running, n) - 1) / n)", "2 + down((running - 1) / n)", "aligned waves touch a slice more", RESIDENCY),
    (SHARING, "2 + down((running - 2) / most(", "1 + down((running - 2) / most(", "waves of dealt slices touch one less", RESIDENCY),
    (SHARING, "return least(self.slices, 2 * self.in_a_wave - 1)", "return self.in_a_wave", "a sawtooth lives on one wave's slices", RESIDENCY),
    (SHARING, "return self.live * self.slice_bytes", "return self.slice_bytes", "one slice is live", RESIDENCY),
    (SHARING, "apart -= down((ctas - 1) * Gcd(running, n) / (running * n))", "pass", "waves that end with a slice meet it again", RESIDENCY),
    (SHARING, "+ self.slices * self.rounds - 1", "+ self.slices * self.rounds", "one meeting too many", RESIDENCY),
    (SHARING, "whole = full * self.slices + last", "whole = full * self.slices", "the last wave reads nothing", RESIDENCY),
    (SHARING, "at_most(self.live_bytes + own + self.others, C_L2)", "at_most(self.slice_bytes + own + self.others, C_L2)", "one slice fits for all", RESIDENCY),
    (SHARING, "at_most(self.live_bytes + own + self.others, C_L2)", "at_most(self.live_bytes + own + self.others + 1, C_L2)", "a byte short of fitting", RESIDENCY),
    (SHARING, "own = self.beside * least(self.waves, self.waves_between)", "own = self.beside", "what a wave leaves needs no room in the next", RESIDENCY),
    (SHARING, "at_most(self.live * self.step_bytes + self.beside_step + self.others, C_L2)", "at_most(self.step_bytes + self.beside_step + self.others, C_L2)", "one slice's tiles stay for all", RESIDENCY),
    (SHARING, "at_most(self.live * self.step_bytes + self.beside_step + self.others, C_L2)", "sp.true", "tiles of a step always stay", RESIDENCY),
    (SHARING, "again - self._kept_at_turns(again - once)", "again", "a sawtooth saves nothing", RESIDENCY),
    (SHARING, "self._kept_at_turns(again - once)", "self._kept_at_turns(again)", "a sawtooth turns once too often", RESIDENCY),
    (SHARING, "up(turns / 2) * at_end + down(turns / 2) * at_start", "turns * at_start", "every turn is at the start", RESIDENCY),
    (SHARING, "ragged + t * down((share - ragged) / t)", "t * down(share / t)", "the ragged tile is a whole one", RESIDENCY),
    (SHARING, "share, ragged = C_L2 / self.live", "share, ragged = C_L2", "a slice has the whole cache", RESIDENCY),
    (SHARING, "(ending + beginning) / F", "(ending) / F", "the beginning slice stays whole", RESIDENCY),
    (SHARING, "(ending + beginning) / F", "(beginning) / F", "the ending slice stays whole", RESIDENCY),
    (SHARING, "return least(most(down(C / caches), sp.Integer(1)), up(kernel.ctas / caches)) * a_cta", "return least(C, kernel.ctas) * a_cta", "private caches each hold all CTAs' own tiles", RESIDENCY),
    (SHARING, "at_most(2 * self.running, self.sharers))", "sp.true)", "straddling waves are claimed exact", RESIDENCY),
    (SHARING, "if not masked else sp.And(self.fits, one_cache)", "if not masked else sp.true", "masked private caches are claimed exact", RESIDENCY),
    # what crosses HBM
    (RESIDENT, "once = a_slice * shared.slices * shared.copies", "once = a_slice * shared.slices", "private caches share one copy", RESIDENCY),
    (RESIDENT, "streamed = a_slice * shared.copies * shared.streamed", "streamed = a_slice * shared.streamed", "one cache streams", RESIDENCY),
    (RESIDENT, "cases((once, shared.fits), (streamed, shared.streams), (unshared, sp.true))", "cases((once, shared.fits), (streamed, sp.true))", "CTAs share what does not fit", RESIDENCY),
    (RESIDENT, "cases((once, shared.fits), (unshared, sp.true))\n    streamed", "cases((once, shared.fits), (once, sp.true))\n    streamed", "masked sawtooth waves share", RESIDENCY),
    (RESIDENT, "last = least((w + 1) * shared.running, shared.sharers) - 1", "last = least(w * shared.running, shared.sharers) - 1", "a wave reads what the one before saw", RESIDENCY),
    (RESIDENT, "if shared.sharers != met.rows.trips:\n        return read\n", "", "another head's rows count as this one's", RESIDENCY),
    (RESIDENT, "fits = at_most(live, C_L2)\n            once", "fits = sp.true\n            once", "partial sums always fit", RESIDENCY),
    (RESIDENT, "if finished_in_place(schedule, kernel, tensor):\n        return Move()\n", "", "U is written beside O", RESIDENCY),
    (RESIDENT, "span = schedule.kernels[schedule.kernels.index(writer) :", "span = schedule.kernels[schedule.kernels.index(reader) :", "the writer's operands need no room", RESIDENCY),
    (RESIDENT, "+ sp.Add(*(s.live_bytes for s in groups))", "", "shared slices need no room beside partial sums", RESIDENCY),
    # exact sums
    ("derive/pieces.py", "total += quotient * (n * (n - 1) // 2)", "total += quotient * (n * (n + 1) // 2)", "floor_sum: slope term", EXACT),
    ("derive/pieces.py", "total += quotient * n\n", "", "floor_sum: constant term", EXACT),
    ("derive/pieces.py", "top = a * n + b", "top = a * (n - 1) + b", "floor_sum: recursion bound", EXACT),
    ("derive/pieces.py", "n, b, m, a = top // m, top % m, a, m", "n, b, m, a = top // m, b, a, m", "floor_sum: recursion offset", EXACT),
    ("derive/pieces.py", "Fraction((self.first + self.last) * n, 2)", "Fraction((self.first + self.last) * n, 1)", "sum of a line", EXACT),
    ("derive/pieces.py", "floor_sum(n, m, a, a * self.first + b)", "floor_sum(n, m, a, b)", "a piece starts at zero", EXACT),
    ("derive/pieces.py", "rises == keep_larger else (left, right)", "not keep_larger else (left, right)", "min and max of falling lines", EXACT),
    ("derive/exact.py", "if last < first:\n        return 0", "if last < first - 10:\n        return 0", "empty sums", EXACT),
    # passes
    ("derive/passes.py", "ready += 1", "ready += 0", "reductions are never waited for", PASSES),
    ("derive/passes.py", "and not reads_running_value(graph, einsum, tensor.name, index)", "", "a running maximum is waited for", PASSES),
    ("derive/passes.py", "if einsum.rescale != maximum:", "if einsum.rescale is None and False:", "plain sums follow the maximum", PASSES),
    ("derive/passes.py", "if any(e.map is not Map.EXP for e in frontier):", "if False:", "anything may be rescaled", PASSES),
    # work
    (FLOP, "FLOPS_PER_MULTIPLY_ADD = 2", "FLOPS_PER_MULTIPLY_ADD = 1", "a multiply-add is one FLOP", FLOPS),
    (FLOP, "bool(left & output - right) and bool(right & output - left)", "bool(left & output - right)", "matrix-vector products on the matrix pipe", FLOPS),
    (FLOP, "return dense / 2", "return dense", "half of dense is dense", FLOPS),
    (FLOP, "Map.EXP: {Pipe.SFU: 1}", "Map.EXP: {Pipe.VECTOR: 1}", "exponentials on the vector pipe", FLOPS),
    (FLOP, "return einsum.points\n", "return dense\n", "masked pairs are useful", FLOPS),
    (FLOP, "(met.tiles if loop == met.keys else 1)", "(loop.trips)", "masked tiles are run", FLOPS),
    (FLOP, "amount *= loop.trips * rows", "amount *= loop.extent", "ragged tiles run no padding", FLOPS),
    (FLOP, "found[Pipe.VECTOR] += trips", "found[Pipe.VECTOR] += 0", "rescaling takes no product", FLOPS),
    (FLOP, "if e.rescale not in maxima:", "if True:", "each sum takes its own exponential", FLOPS),
    # masks
    ("derive/clamped.py", "m * (m + 1) / 2 + top", "m * (m - 1) / 2 + top", "pairs: the triangle", MASK),
    ("derive/clamped.py", "+ top * most(x - top, ZERO)", "", "pairs: rows that see every key", MASK),
    ("derive/clamped.py", "_prefix(offset + since - 1, top)", "0", "pairs: rows before the first key", MASK),
    ("derive/mask.py", 'offset = columns - rows if align == "bottom-right"', 'offset = 0 * rows if align == "bottom-right"', "alignment", MASK),
    ("derive/mask.py", "self._clamp(interval.last.xreplace({ROW: bottom}) + 1)", "_clamp(self.last.xreplace({ROW: row}), self.columns)", "a query does not see its own key", MASK),
    ("derive/mask.py", "clamp(-bound.xreplace({ROW: ZERO}), self.rows)", "ZERO", "blind rows", MASK),
    # footprint
    ("derive/footprint.py", "size *= loop.tile\n", "size *= loop.extent\n", "tiles as large as the problem", FOOTPRINT),
    ("derive/footprint.py", "tensor.width if place is Place.SHARED else accumulator", "tensor.width", "registers by stored width", FOOTPRINT),
    ("derive/footprint.py", "name in graph.outputs or n <= last_read[name]", "n <= last_read[name]", "outputs die with their last reader", FOOTPRINT),
    ("derive/footprint.py", "position[name] <= n and (", "(", "intermediates live before they are made", FOOTPRINT),
    # tiles for a machine
    ("derive/staging.py", "kernel.sequential[-1].carried_by(tensor)", "kernel.sequential[0].carried_by(tensor)", "the outermost loop decides what streams", TILES),
    ("derive/staging.py", "(stages if streams(kernel, tensor) else 1)", "stages", "what stays has a buffer a stage", TILES),
    ("derive/staging.py", "grid=x.grid or n <= last", "grid=x.grid", "warp groups share registers", TILES),
    ("derive/staging.py", "if name not in in_place", "", "Q is staged twice", TILES),
    ("outputs/tiles.py", "lcm(self.choices.step, int(instruction.value))", "self.choices.step", "rows ignore the matrix instruction", TILES),
    ("outputs/tiles.py", "-(-held[B_r.name] // groups)", "self.rows", "rows are not dealt evenly", TILES),
    ("outputs/tiles.py", "return (self.sm, self.dram or 0, self.shared, *self.sizes.values())", "return (self.sm, *self.sizes.values())", "ties go by size", TILES),
    ("outputs/tiles.py", "while tile < self.extents[name]:", "while tile + step <= self.extents[name]:", "a ragged last size is never tried", TILES),
    ("outputs/tiles.py", "self.needed(limit, sizes) > room", "self.needed(limit, sizes) >= room", "a full memory is over-full", TILES),
    ("outputs/published_tiles.py", "line.d_max == built_for and ", "", "a wider kernel speaks for a narrower head", TILES),
    ("outputs/tile_comparison.py", "stages=line.stages, ", "", "published kernels run with the stages asked for", TILES),
    # running a schedule
    (EXECUTES, "so_far, relative_to = so_far * np.exp(rise), maximum", "relative_to = maximum", "partial sums are not rescaled", EXECUTE),
    (EXECUTES, "relative_to - maximum)", "maximum - relative_to)", "rescaled the wrong way", EXECUTE),
    (EXECUTES, "so_far, relative_to = so_far * np.exp(rise), maximum", "so_far = so_far * np.exp(rise)", "the old maximum is kept", EXECUTE),
    (EXECUTES, "self.spilled[tensor.name, left] = partial", "pass", "partial sums that leave are lost", EXECUTE),
    (EXECUTES, "if self.launch.waits(name) else self.iterations[::-1]", "if False else self.iterations[::-1]", "nobody waits for an inner sum", EXECUTE),
    (EXECUTES, "Reduce.MAX: -np.inf}", "Reduce.MAX: 0.0}", "a maximum of nothing is 0", EXECUTE),
    # rewritings
    ("rules/algebra/defer_division.py", "(unnormalised, denominator), Map.DIV)", "(unnormalised, denominator), Map.MUL)", "multiplies by l", ALGEBRA),
    ("rules/algebra/split_softmax.py", "Einsum(maximum, (scores,), Map.COPY, Reduce.MAX, mask)", "Einsum(maximum, (scores,), Map.COPY, Reduce.SUM, mask)", "shifts by the sum", ALGEBRA),
    ("rules/algebra/online_softmax.py", "replace(e, rescale=maximum.output.name)", "replace(e, rescale=None)", "rescales nothing", ALGEBRA),
    ("rules/algebra/share_heads.py", "original if t == match.output else t", "t", "reads the copy that is gone", ALGEBRA),
    ("rules/schedule/pack_heads.py", "(*rows.indices, *heads.indices)", "(*heads.indices, *rows.indices)", "heads run slowest", ALGEBRA),
    ("rules/schedule/launch.py", "grid = (*kernel.grid, Loop(", "grid = (Loop(", "launched loops lose the grid", ALGEBRA),
    ("rules/schedule/fuse.py", "schedule.replace(match, Kernel(names))", "schedule.replace(match, Kernel(names[::-1]))", "runs backwards", ALGEBRA),
    # growth classes
    ("derive/growth/linear.py", "if row[j] > 0 and (best", "if row[j] < 0 and (best", "the ratio test takes the wrong sign", (GROWN + "linear.py",)),
    ("derive/growth/linear.py", "return left < right", "return left > right", "the largest ratio enters", (GROWN + "linear.py",)),
    ("derive/growth/cone.py", "if any(common & t == common for n, t in enumerate(tight) if n not in (p, q)):", "if False:", "rays that are no neighbours meet", (GROWN + "cone.py",)),
    ("derive/growth/count.py", "for t in held\n        ]", "for t in held[1:]\n        ]", "a footprint term is no limit", (GROWN + "constants.py",)),
    ("derive/growth/posynomial.py", "else inside - 1", "else inside", "a floor loses nothing", (GROWN + "posynomial.py",)),
    ("derive/growth/constants.py", "constant *= (term.coefficient * share / sp.Rational(w)) ** sp.Rational(w)", "constant *= (term.coefficient / sp.Rational(w)) ** sp.Rational(w)", "fast memory is not shared", (GROWN + "constants.py",)),
    ("derive/growth/regimes.py", "return Rival(forms, tuple(parameters.normal(c) for c in found.needs))", "return Rival(forms, ())", "tiles fit everywhere", (GROWN + "regimes.py",)),
    ("derive/growth/tile_bounds.py", "/ self.keys.tile) / 2, self.query_rows_once)", "/ self.keys.tile), self.query_rows_once)", "the last row tile does not stay", (GROWN + "tile_bounds.py",)),
    ("derive/growth/count.py", "                found = less\n", "                pass\n", "single trips save nothing", (GROWN + "constants.py",)),
    ("derive/growth/count.py", "continue  # a tile as large as that extent fits nowhere in the region", "raise", "a regime without room for a whole extent is refused", (GROWN + "classes.py",)),
    # machines
    (CONSTANT, "_number(table[\"value\"], place) * worth, base, f\"", "_number(table[\"value\"], place), base, f\"", "units are worth nothing", HARDWARE),
    (CONSTANT, "if kind not in KINDS:", "if False:", "any kind will do", HARDWARE),
    (CONSTANT, "if unknown := sorted(set(table) - fields):", "if unknown := sorted(set()):", "unknown fields pass", HARDWARE),
    (CONSTANT, "if UNITS[unit][1] not in bases:", "if False:", "a bandwidth in bytes passes", HARDWARE),
    (CONSTANT, "if value <= 0:", "if value < 0:", "zero is a constant", HARDWARE),
    (CONSTANT, "if not low <= value <= high:", "if False:", "slips of the pen pass", HARDWARE),
    (CONSTANT, "if type(table.get(\"date\")) is not date:", "if False:", "constants without a date pass", HARDWARE),
    (CONSTANT, 'if sparsity != "dense":', "if False:", "sparse peaks pass as dense", HARDWARE),
    (CONSTANT, "return Fraction(value)", "return Fraction(float(value))", "values are rounded to floats", HARDWARE),
    ("hardware/machine.py", "parse_float=Decimal", "parse_float=float", "values are read as floats", HARDWARE),
    ("hardware/machine.py", 'self.get("measured_l2_full_speed_capacity") or self["l2_effective"]', 'self["l2_size"]', "the effective L2 is the nominal one", HARDWARE),
    ("hardware/units.py", '_KILO, _KIBI = 10**3, 2**10', '_KILO, _KIBI = 10**3, 10**3', "binary prefixes are decimal", HARDWARE),
)  # fmt: skip
