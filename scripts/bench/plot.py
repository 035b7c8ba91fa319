# SPDX-License-Identifier: GPL-2.0-or-later
"""Plots of the comparison, drawn by gnuplot, as self-contained SVG."""

import shutil
import subprocess

# Colors that color-blind readers can tell apart, and shapes of points, which distinguish
# lines that are printed without colors
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
           "#444444"]
POINTS = [7, 5, 9, 13, 11, 4, 6]
STYLE = """
set terminal svg noenhanced size 780,430 dynamic background '#ffffff' \
font 'Helvetica,Arial,sans-serif,13'
set encoding utf8
set border 3 lc rgb '#444444'
set tics nomirror
set grid ytics lc rgb '#dddddd' lt 1
set key outside right top Left reverse samplen 2 spacing 1.2
"""


def problem():
    return None if shutil.which("gnuplot") else "gnuplot is not installed"


def _text(s):
    return "'" + s.replace("'", "''") + "'"


def _run(script):
    done = subprocess.run(["gnuplot"], input=STYLE + script, check=False,
                          capture_output=True, text=True, timeout=60)
    if done.returncode or "<svg" not in done.stdout:
        raise RuntimeError(f"gnuplot: {done.stderr.strip()}")
    return "".join(line.rstrip() + "\n"
                   for line in done.stdout.splitlines())


def _number(v):
    return "NaN" if v is None else f"{v:.6g}"


def _blocks(series):
    out = []
    for n, (_, points) in enumerate(series):
        out.append(f"$data{n} << EOD\n" + "".join(
            " ".join(_number(v) for v in p) + "\n" for p in points) + "EOD\n")
    return "".join(out)


def lines(series, xlabel, ylabel, xticks=None, logx=False, logy=True,
          more=""):
    """Draw lines with error bars; return the SVG.

    series: [(name, [(x, y, lower end of the error bar, upper end)])]
    xticks: labels of the x axis; x is then the index of a label, from 0
    """
    script = _blocks(series)
    script += f"set xlabel {_text(xlabel)}\nset ylabel {_text(ylabel)}\n"
    if xticks:
        script += "set xtics (" + ", ".join(
            f"{_text(str(t))} {n}" for n, t in enumerate(xticks)) + ")\n"
        script += f"set xrange [-0.3:{len(xticks) - 0.7}]\n"
    if logx:
        script += "set logscale x\nset format x '%.0s%c'\n"
    if logy:
        script += "set logscale y\nset format y '%.0s%c'\n"
    script += more
    plots = []
    for n, (name, _) in enumerate(series):
        c, p = COLOURS[n % len(COLOURS)], POINTS[n % len(POINTS)]
        plots.append(f"$data{n} using 1:2:3:4 with yerrorlines lw 1.6 pt {p} "
                     f"ps 0.7 lc rgb '{c}' title {_text(name)}")
    return _run(script + "plot " + ", \\\n".join(plots) + "\n")


def bars(rows, xlabel, logx=True, start=1, kinds=()):
    """Draw a horizontal bar with an error bar for each row; return the SVG.

    rows: [(name, value, lower end of the error bar, upper end)], from top to bottom
    start: value at which the bars begin on a logarithmic axis
    kinds: names of kinds, each with a color; each row then has one more element, the
        index of its kind
    """
    rows = list(reversed(rows))
    script = ""
    for kind in range(max(len(kinds), 1)):
        script += f"$data{kind} << EOD\n" + "".join(
            f"{n} {_number(m)} {_number(a)} {_number(b)}\n"
            for n, (_, m, a, b, *k) in enumerate(rows)
            if not kinds or k == [kind]) + "EOD\n"
    script += f"set xlabel {_text(xlabel)}\n"
    script += "set key outside top center horizontal\n" if kinds \
        else "unset key\n"
    script += "set grid noytics xtics lc rgb '#dddddd' lt 1\n"
    script += "set ytics (" + ", ".join(
        f"{_text(row[0])} {n}" for n, row in enumerate(rows)) + ")\n"
    script += f"set yrange [-0.6:{len(rows) - 0.4}]\n"
    if logx:
        script += f"set logscale x\nset xrange [{start}:*]\n" \
                  "set format x '%.0s%c'\n" + \
                  ("set xtics add ('' 0.5)\n" if start < 1 else "")
    else:
        start = 0
    script += "set style fill solid 0.85 noborder\n"
    plots = []
    for kind, title in enumerate(kinds or [""]):
        plots.append(
            f"$data{kind} using ({start}):1:({start}):2:($1-0.34):($1+0.34)"
            f" with boxxyerror lc rgb '{COLOURS[kind]}' "
            f"title {_text(title)}")
        plots.append(f"$data{kind} using 2:1:3:4 with xerrorbars lw 1.5 pt 0 "
                     "lc rgb '#222222' notitle")
    return _run(script + "plot " + ", \\\n".join(plots) + "\n")
