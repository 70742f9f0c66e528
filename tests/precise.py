"""Log-densities of every kind of block at 50 digits, by their definitions, from the arrays that files hold.

Written against the file format: nothing here is shared with `src`.
"""

from mpmath import mp, mpf

mp.dps = 50


def log_density(density, x):
    """Of one row, in the data's units, from what `ProductDensity.to_archive` gives."""
    header, arrays = density
    total = mpf(0)
    for number, block in enumerate(header["blocks"]):
        prefix = f"block{number}."
        own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        u = [(mpf(x[c]) - mpf(arrays["shift"][c])) / mpf(arrays["scale"][c]) for c in block["columns"]]
        total += KINDS[block["kind"]](own, u) - sum(mp.log(mpf(arrays["scale"][c])) for c in block["columns"])
    return total


def part(prefix, arrays):
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def log_sum(logs):
    most = max(logs)
    return most + mp.log(sum(mp.exp(one - most) for one in logs))


def kernels(centres, widths, u):
    """log (1/n) sum_i prod_c N(u_c; centre_ic, h_c^2)."""
    h = [mpf(one) for one in widths]
    exponents = [
        -sum(((a - mpf(c)) / w) ** 2 for a, c, w in zip(u, centre, h, strict=True)) / 2 for centre in centres.tolist()
    ]
    return log_sum(exponents) - mp.log(len(centres)) - sum(mp.log(w) + mp.log(2 * mp.pi) / 2 for w in h)


def gaussian(mean, covariance, u):
    C = mp.matrix([[mpf(value) for value in row] for row in covariance.tolist()])
    away = mp.matrix([a - mpf(m) for a, m in zip(u, mean.tolist(), strict=True)])
    square = (away.T * mp.lu_solve(C, away))[0]
    return -(square + mp.log(mp.det(C)) + len(u) * mp.log(2 * mp.pi)) / 2


def of_kde(arrays, u):
    return kernels(arrays["centres"], [arrays["bandwidth"].item()] * len(u), u)


def of_gaussian(arrays, u):
    return gaussian(arrays["mean"], arrays["covariance"], u)


def of_mixture(arrays, u):
    parts = zip(arrays["weights"].tolist(), arrays["means"], arrays["covariances"], strict=True)
    return log_sum([mp.log(mpf(w)) + gaussian(mean, covariance, u) for w, mean, covariance in parts])


def of_stack(arrays, u):
    """As it stands in the file: weights that add up to 1 but for the last digit."""
    logs = [
        mp.log(mpf(w)) + kernels(arrays["centres"], [h] * len(u), u)
        for h, w in zip(arrays["bandwidths"].tolist(), arrays["kernel_weights"].tolist(), strict=True)
    ]
    return log_sum([*logs, of_mixture(arrays, u)] if len(arrays["weights"]) else logs)


def of_copula(arrays, u):
    scores, log_slopes, first = [], mpf(0), 0
    for a, count in zip(u, arrays["n_knots"].tolist(), strict=True):
        knots = [arrays[name][first : first + count].tolist() for name in ("knots", "values", "slopes")]
        z, log_slope = spline(*([mpf(value) for value in array] for array in knots), a)
        scores.append(z)
        log_slopes += log_slope
        first += count
    return of_stack(part("scores.", arrays), scores) + log_slopes


def spline(x, z, slope, at):
    """The monotone rational quadratic of Gregory and Delbourgo, and the logarithm of its slope; linear outside."""
    if at <= x[0]:
        return z[0] + slope[0] * (at - x[0]), mp.log(slope[0])
    if at >= x[-1]:
        return z[-1] + slope[-1] * (at - x[-1]), mp.log(slope[-1])
    k = max(i for i in range(len(x) - 1) if x[i] <= at)
    s = (z[k + 1] - z[k]) / (x[k + 1] - x[k])
    t = (at - x[k]) / (x[k + 1] - x[k])
    below = s + (slope[k + 1] + slope[k] - 2 * s) * t * (1 - t)
    value = z[k] + (z[k + 1] - z[k]) * (s * t**2 + slope[k] * t * (1 - t)) / below
    change = s**2 * (slope[k + 1] * t**2 + 2 * s * t * (1 - t) + slope[k] * (1 - t) ** 2) / below**2
    return value, mp.log(change)


def of_two_scales(arrays, u):
    share = mpf(arrays["share"].item())
    own, copula = of_stack(part("own.", arrays), u), of_copula(part("copula.", arrays), u)
    return log_sum([mp.log(1 - share) + own, mp.log(share) + copula])


def of_tree(arrays, u):
    total = mpf(0)
    for i, (p, c) in enumerate(arrays["edges"].tolist()):
        total += kernels(arrays["centres"][:, [p, c]], arrays["pair_bandwidths"][i].tolist(), [u[p], u[c]])
        if i:
            total -= kernels(arrays["centres"][:, [p]], [arrays["parent_bandwidths"][i].item()], [u[p]])
    return total


KINDS = {
    "kde": of_kde,
    "gaussian": of_gaussian,
    "gaussian-mixture": of_mixture,
    "stack": of_stack,
    "copula": of_copula,
    "two-scales": of_two_scales,
    "tree": of_tree,
}
