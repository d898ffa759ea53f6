"""Encodes English texts with the transformer all-MiniLM-L6-v2, on onnxruntime."""

from typing import Any

from collections_app.model_files import prepare_files

# The model was made for at most 256 tokens. Longer texts are encoded in parts, and the mean of all tokens counts.
MAX_TOKENS = 256
FATAL_ONLY = 4


def load_transformer() -> Any:
    """Returns an encoder. It encodes texts one by one: batches are not faster, and padding would change the vectors."""
    # Imported late, because they take 25 MB.
    import numpy  # noqa: PLC0415
    import onnxruntime  # noqa: PLC0415
    from tokenizers import Tokenizer  # noqa: PLC0415

    from collections_app.model_files import minilm  # noqa: PLC0415

    folder = prepare_files(minilm.MINILM)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)  # the rest is returned as `overflowing`
    rows, factors, positions = [numpy.load(folder / f"{name}.npy", "r") for name in ("rows", "factors", "positions")]
    options = onnxruntime.SessionOptions()
    # Other threads of the process serve other requests.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = FATAL_ONLY
    # Otherwise each process would have its own copy of the weights, in another order that is 7% faster.
    options.add_session_config_entry("session.disable_prepacking", "1")
    session = onnxruntime.InferenceSession(folder / minilm.GRAPH_NAME, options, providers=["CPUExecutionProvider"])

    def encode_text(encoding: Any) -> Any:
        total, count = numpy.zeros(minilm.DIMENSIONS, dtype=numpy.float32), 0
        for part in (encoding, *encoding.overflowing):
            tokens = rows[part.ids] * factors[part.ids] + positions[: len(part.ids)]
            (states,) = session.run(None, {"tokens": tokens[numpy.newaxis]})
            total += states[0].sum(axis=0)
            count += len(part.ids)
        return total / count

    def encode(texts: list[str]) -> Any:
        return numpy.array([encode_text(encoding) for encoding in tokenizer.encode_batch(texts)])

    return encode
