"""Kernels as users write them, unlike those that the compiler was tuned by, timed one by one: compiled by Triton, and by ttopt.

    python bench/gpu/unseen.py [--only REGEX] [--shares N] [--json FILE] [--keep FOLDER]

Needs a GPU, PyTorch with its Triton, and this project's wheel (`./dev wheel`). The kernels are in `unseen_kernels`. How they are
timed and compared: `paired.py`.
"""

import paired


def cases():
    from unseen_kernels import attention, common, images, moving, products, rows  # noqa: F401: each lists its cases
    from unseen_kernels import linalg, lowbit, science, sequences, serving, training  # noqa: F401
    from unseen_kernels import graphs, layers, mixers, scenes, signals, tables  # noqa: F401
    from unseen_kernels import control, extents, folds, models  # noqa: F401
    from unseen_kernels import geometry, libraries, pipelines, small, widths  # noqa: F401
    from unseen_kernels import bodies, contractions, interactions, procedures  # noqa: F401
    from unseen_kernels import epilogues, fields, passes, queries  # noqa: F401
    from unseen_kernels import habits, recipes, records, sights, simulations  # noqa: F401
    from unseen_kernels import axes, convolutions, modules, parts  # noqa: F401
    from unseen_kernels import assorted, blocks, firsts, generated, numerics  # noqa: F401
    from unseen_kernels import attempts, formats, fusions, idioms, phrases, uneven  # noqa: F401
    from unseen_kernels import drafts, errands, gradients, hints, quanta  # noqa: F401
    from unseen_kernels import chains, loops, reverses, volumes  # noqa: F401
    from unseen_kernels import courses, heeds, tilings, traffic  # noqa: F401
    from unseen_kernels import descents, laboratory, tenants  # noqa: F401
    from unseen_kernels import foundry, returns, warehouse  # noqa: F401
    from unseen_kernels import askers, mills, weaves  # noqa: F401
    from unseen_kernels import almanacs, apiaries, aqueducts, armadas, attics, belfries, canals, caravans, dovecotes, ferries, gardens, harbors, harvests, orchards, vineyards, wards  # noqa: F401
    from unseen_kernels import cloisters, junctions, marinas, pavilions, tanneries, terraces  # noqa: F401
    from unseen_kernels import bazaars, brickyards, carousels, clockworks, glaciers, kilns, lagoons, lanterns, lighthouses, meadows, menageries, orreries, quarries, refineries, smithies, sundials, tides  # noqa: F401

    return common.CASES


if __name__ == "__main__":
    paired.main(__doc__.splitlines()[0], cases, shares=4)
