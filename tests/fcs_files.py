"""FCS files as instruments write them."""


def write_fcs(path, X, names, markers, kind="F"):
    """The smallest FCS 3.0 file: header, text, big-endian numbers."""
    words = {"$DATATYPE": kind, "$MODE": "L", "$BYTEORD": "4,3,2,1", "$PAR": X.shape[1], "$TOT": len(X)}
    bits = 64 if kind == "D" else 32
    for i, (name, marker) in enumerate(zip(names, markers, strict=True), start=1):
        words |= {f"$P{i}N": name, f"$P{i}B": bits, f"$P{i}R": 1024} | ({f"$P{i}S": marker} if marker else {})
    text = ("|" + "".join(f"{key}|{value}|" for key, value in words.items())).encode()
    data = X.astype(f">f{bits // 8}").tobytes()
    places = [58, 57 + len(text), 58 + len(text), 57 + len(text) + len(data), 0, 0]
    header = b"FCS3.0    " + b"".join(f"{place:8d}".encode() for place in places)
    path.write_bytes(header + text + data)
