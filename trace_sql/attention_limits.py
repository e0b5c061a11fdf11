"""What keeps attention kernels that do no more than they must: launches, tiles, rates.

Sentences of the lead operation of a finding; `attention_advice` says which belong together.
"""

from __future__ import annotations

from trace_sql.attention_words import (
    Operation,
    count,
    decodes,
    is_paged,
    mean,
    megabytes,
    micros,
    per_call,
    percent,
    rate,
    roof,
    share,
    top,
)

# A launch.


def launch_insight(operation: Operation) -> str:
    """Return that a call is too short for its roofline to matter."""
    facts = operation["analysis"]
    least, launch = per_call(operation, "roofline_us") or 0, facts["launch_us"] or 0
    if least < launch:
        return (
            f"A call asks for {micros(least)} at the peaks and takes {mean(operation)}, while"
            f" hardly a kernel of this trace takes less than {micros(launch)}: it is too short for"
            " bandwidth or compute to matter."
        )
    return (
        f"A call takes {mean(operation)} where kernels of this trace take {micros(launch)} at"
        f" least: starting and draining it weigh as much as the {roof(operation)} of its work."
    )


def launch_action(operation: Operation) -> str:
    """Return to make calls larger, and only then to look at the kernel."""
    if decodes(operation):
        first = (
            "Decode larger batches, or several tokens of a request at once (speculative decoding),"
            " so that each call has more to do."
        )
    else:
        first = (
            "Give each call more to do, by larger batches or by packing sequences into one call."
        )
    if operation["efficiency"]["bound_type"] == "memory":
        return f"{first} Optimize the memory access of {top(operation)} only after that."
    return (
        f"{first} Profile {top(operation)} for tile-size and wave-occupancy tuning only after that."
    )


def launch_reason(operation: Operation) -> str:
    """Return that latency sets the time."""
    facts = operation["analysis"]
    sentences = []
    tiles, units = facts["tiles"], facts["units"]
    if facts["n_blocks"] and units and facts["n_blocks"] < units:
        sentences.append(
            f"A launch has {count(facts['n_blocks'], 'thread block')} for {units} compute units,"
            " and each goes through its keys one after the other."
        )
    elif not facts["n_blocks"] and tiles and units and tiles < units:
        cut = "a request and key head" if decodes(operation) else "128 queries of a head"
        sentences.append(
            f"Cut into tiles of {cut}, a call has {count(tiles, 'tile')} for {units} compute units,"
            " and each goes through its keys one after the other."
        )
    so = "So latency" if sentences else "Latency"
    sentences.append(f"{so} sets the time: one short round of work that starts and drains.")
    ratio = facts["mean_us"] / facts["launch_us"] if facts["launch_us"] else 0
    if ratio >= 4:
        sentences.append(
            f"Still, {mean(operation)} is {ratio:.0f} times the shortest kernels here, which is"
            " more than a launch."
        )
    return " ".join(sentences)


def launch_way(operation: Operation) -> str:
    """Return how to make them larger."""
    facts = operation["analysis"]
    ratio = facts["mean_us"] / facts["launch_us"] if facts["launch_us"] else 0
    other = " Compare attention back ends at this shape: one with less fixed cost shows at once."
    return (
        "Batch requests, or pack sequences of different lengths into one call, and look at time per"
        " token rather than per call." + (other if ratio >= 4 else "")
    )


# Tiles.


def tiles_insight(operation: Operation) -> str:
    """Return how much of the GPU a call leaves idle."""
    facts = operation["analysis"]
    blocks, units = facts["n_blocks"], facts["units"] or 1
    parts = blocks or facts["tiles"] or 0
    what = count(parts, "thread block" if blocks else "tile")
    if parts < units:
        has = f"A launch has {what}" if blocks else f"A call has about {what} of work"
        return (
            f"{has} for {units} compute units, so {percent(100 - 100 * parts / units)} of the GPU"
            f" stays idle while it runs: {rate(operation)}."
        )
    return (
        f"The {what} of a {'launch' if blocks else 'call'} need {-(-parts // units):.0f} rounds on"
        f" {units} compute units and leave the last one mostly empty: {rate(operation)}."
    )


def tiles_action(operation: Operation) -> str:
    """Return to split the work further."""
    return (
        "Split the keys of a query over several workgroups, or put more heads or sequences into a"
        f" call. Profile {top(operation)} for tile-size and wave-occupancy tuning: smaller tiles"
        " fill more of the GPU."
    )


def tiles_reason(operation: Operation) -> str:
    """Return what whole rounds of tiles take."""
    return (
        "Assuming tiles of 128 queries, whole rounds of them take"
        f" {micros(per_call(operation, 'tile_us'))} at the peak, where the work itself is worth"
        f" {roof(operation)}. The call takes {mean(operation)}."
    )


def tiles_way(operation: Operation) -> str:
    """Return how to split it."""
    return (
        "Choose an attention kernel that splits keys where queries are few, or raise the batch; the"
        f" launch grid of {top(operation)} shows whether it helped."
    )


# Compute and bandwidth.


def compute_insight(operation: Operation) -> str:
    """Return how far products are from their peak."""
    efficiency = operation["efficiency"]
    text = (
        f"At {efficiency['flops_per_byte']:,.0f} FLOPs a byte these calls are a matter of compute,"
        f" and they run at {rate(operation)}: {mean(operation)} each, where the roofline is"
        f" {roof(operation)}."
    )
    measured, told = efficiency["measured_efficiency_percent"], share(operation)
    if efficiency["peak_kind"] == "measured" or not measured or not told or measured < 1.1 * told:
        return text
    return f"{text} Of what large matrix products reach on this GPU that is {percent(measured)}."


def compute_action(operation: Operation) -> str:
    """Return to profile the kernel."""
    first = f"Profile {top(operation)} for tile-size and wave-occupancy tuning."
    profile = operation["classification"]["workload_profile"]
    if is_paged(operation) and profile["workload_type"] == "prefill_heavy":
        return (
            f"{first} Enable chunked prefill, so that a long prompt does not set a step's latency."
        )
    return first


def compute_reason(operation: Operation) -> str:
    """Return where the rest is lost."""
    facts = operation["analysis"]
    parts = facts["n_blocks"] or facts["tiles"]
    if parts and facts["units"] and parts >= facts["units"]:
        what = "thread blocks" if facts["n_blocks"] else "tiles of 128 queries"
        return (
            f"The GPU has enough to do ({parts:,.0f} {what} for {facts['units']} compute units), so"
            " what is missing is lost inside of the kernel: between its products stand softmax and"
            " waits for data."
        )
    return "What is missing is lost inside of the kernel; the trace shows its duration alone."


def compute_way(operation: Operation) -> str:
    """Return what to try first."""
    text = "Time other attention back ends at this shape before tuning this one."
    if (
        is_paged(operation)
        and (operation["classification"]["workload_profile"]["gqa_ratio"] or 1) > 1
    ):
        text += " Confirm that the kernel loads a key head once for its group of query heads."
    return text


def bandwidth_insight(operation: Operation) -> str:
    """Return how far reads are from the bandwidth."""
    moved = megabytes(operation)
    if decodes(operation):
        cached = operation["classification"]["workload_profile"]["gen_bytes_ratio"] or 1
        part = "nearly all" if cached > 0.95 else "most"
        return (
            f"A call must read {moved}, {part} of it cache, and gets {rate(operation)}:"
            f" {mean(operation)}, where the bandwidth allows {roof(operation)}."
        )
    return (
        f"A call must move {moved} and gets {rate(operation)}: {mean(operation)}, where the"
        f" bandwidth allows {roof(operation)}."
    )


def bandwidth_action(operation: Operation) -> str:
    """Return to read more at once."""
    first = f"Optimize the memory access of {top(operation)}."
    if decodes(operation):
        return (
            "Decode with larger batches, which put more reads in flight, and consider speculative"
            f" decoding, which reads a key once for several tokens. {first}"
        )
    return first


def bandwidth_reason(operation: Operation) -> str:
    """Return what makes reads slow."""
    facts = operation["analysis"]
    sentences = []
    if facts["combine_pct"] > 10:
        sentences.append(
            f"Combining the parts of split keys takes {percent(facts['combine_pct'])} of the kernel"
            " time."
        )
    if (facts["page_pct"] or 0) > 10:
        sentences.append(
            f"Whole pages of the cache can add {percent(facts['page_pct'])} to the bytes."
        )
    if decodes(operation):
        sentences.append(
            "Each request reads its own keys and values once for a single token or a few, so bytes"
            " set the least time, and requests of different lengths end at different times."
        )
    if not decodes(operation) or operation["perf_params"]["phase"] == "mixed":
        sentences += balance(operation)
    return " ".join(sentences)


def balance(operation: Operation) -> list[str]:
    """Return what bytes and products each need, of a call that is no decoding."""
    shape, efficiency = operation["perf_params"], operation["efficiency"]
    sentences = []
    times = [
        shape[work] / operation["count"] / efficiency[f"resolved_peak_{peak}"] / 1e6
        for work, peak in (("bytes", "hbm_bw"), ("flops", "maf"))
        if shape[work] and efficiency[f"resolved_peak_{peak}"]
    ]
    if len(times) == 2:
        sentences.append(
            f"At the peaks its bytes need {micros(times[0])} and its products {micros(times[1])};"
            f" neither explains {mean(operation)}."
        )
    if (operation["perf_params"]["n_q"] or 0) < 1024 and not operation["perf_params"]["packed"]:
        sentences.append("So short a sequence leaves a kernel little to hide its loads behind.")
    return sentences


def bandwidth_way(operation: Operation) -> str:
    """Return how to get more of the bandwidth."""
    if decodes(operation):
        kv = operation["perf_params"]["kv_dtype"] or ""
        eight = " An 8-bit cache would halve the bytes." if kv in ("bf16", "fp16") else ""
        return (
            "Raise the number of requests a step until bandwidth stops growing, then profile the"
            f" kernel's loads.{eight}"
        )
    return (
        "Time other attention back ends at this shape, and profile whether loads or products wait."
    )


def cache_insight(operation: Operation) -> str:
    """Return how far writes to the cache are from the bandwidth."""
    if near_launch(operation):
        return (
            f"Writing keys and values to the cache takes {mean(operation)} a call, where hardly a"
            f" kernel of this trace takes less than {micros(operation['analysis']['launch_us'])}:"
            " the launch sets this time, not the bytes."
        )
    return (
        f"Writing keys and values to the cache moves {megabytes(operation)} a call at"
        f" {rate(operation)}: {mean(operation)}, where the bandwidth allows {roof(operation)}."
    )


def cache_action(operation: Operation) -> str:
    """Return to try other block sizes, where they can matter."""
    if near_launch(operation):
        return (
            "Leave the kernel as it is: the launch sets its time, so the gap to the bandwidth that"
            " is counted below cannot be closed by tuning. With more tokens a step, test KV cache"
            " block_size 16, 32 and 64."
        )
    return "Test KV cache block_size 16, 32 and 64."


def cache_reason(operation: Operation) -> str:
    """Return why writes to a cache are slow."""
    if near_launch(operation):
        return f"A call writes {megabytes(operation)}, which the bandwidth takes in at once."
    return "Tokens go to pages all over the cache, in pieces as short as a head."


def cache_way(operation: Operation) -> str:
    """Return what to look at next."""
    if near_launch(operation):
        return "Steps of more tokens spread the launch over more bytes."
    return f"Check how {top(operation)} groups its writes in a kernel profile."


def near_launch(operation: Operation) -> bool:
    """Whether a call takes hardly longer than the shortest kernels."""
    facts = operation["analysis"]
    return bool(facts["launch_us"] and facts["mean_us"] < 2 * facts["launch_us"])
