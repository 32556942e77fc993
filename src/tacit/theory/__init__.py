"""The seeds as functions: what the papers and lectures behind Tacit prove, and their algorithms as printed.

The product does not import this shelf. Tests hold the product against it, benchmarks run it, and
docs/understand/guarantees.md works examples with it. A file is a document, or an algorithm of one.

Roth, lecture 8; lecture notes on nonlinear queries; and what all bounds share
    lecture_8         Task, Bound, step_epsilon; exponential_distinguisher; net_updates, median_updates,
                      sampled_net_rows, sampled_net_updates; offline, offline_plan, median_offline_alpha;
                      PROVED, LECTURE_8; TrivialNet, of the notes
Roth, lecture 12
    lecture_12        sparse_accuracy, sparse_distinguisher; weights_updates; online, online_plan, weights_online_alpha;
                      FRESH_NOISE, EQUAL_HALVES, LECTURE_12
Smith & Ullman, notes on query release
    smith_ullman      every_interval, prefixes_and_differences, binary_tree, wide_tree, best_branching, square_root,
                      lower_bound; textbook, honaker, which read noisy trees
Roth & Roughgarden 2010, "Interactive Privacy via the Median Mechanism"
    median_paper      sections 3 and 4: PaperConstants, Thresholds, agreement, easy_error, sample_records,
                      alpha_reached, doubling_phases
    figure_1          the basic mechanism, which runs: FigureOne, MedianBasic, MedianDoubling
    median_efficient  section 5: Efficient; the grid walk (grid_start, grid_step, grid_masses, member); DatabaseSample
                      (population, database_sample)

The laboratory runs what the product does not, on an open session: docs/understand/seeds.md
    laboratory        figure_1, figure_1_doubling; every_interval, prefixes_and_differences; grid_walk

What the product runs of all this stands with the product: multiplicative weights and the median over a listed net in
`release.rules`, the two constructions in `release.offline` and `release.online`, the median mechanism in
`release.median`, trees and factorisations in `release.ranges`.
"""
