// Draws the charts that data.js makes of the data in the page, with uPlot.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const LOGARITHMIC = new Set(["duration", "rest"]);
  // Rows of the table of a chart; of more points, one in so many is shown.
  const ROWS_MAX = 20;
  const root = document.documentElement;
  const darkScheme = matchMedia("(prefers-color-scheme: dark)");
  const HEIGHT = 260;
  const DASH = [6, 4];
  // Heights of a heat map's colours: the palette has so many stops.
  const HEAT_STOPS = 5;
  let plots = [];

  // ---- Colours: those of the style sheet, as they are now ----

  function colours() {
    const style = getComputedStyle(root);
    const of = (name) => style.getPropertyValue(name).trim();
    return {
      ink: of("--ink"),
      quiet: of("--quiet"),
      grid: of("--grid"),
      span: of("--span"),
      paper: of("--card"),
      tints: [1, 2, 3, 4, 5, 6].map((number) => of(`--tint-${number}`)),
      heat: Array.from({ length: HEAT_STOPS }, (_, index) => channels(of(`--heat-${index}`))),
    };
  }

  function channels(hex) {
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  }

  // The colour of a share from 0 to 1.
  function heatColour(stops, share) {
    const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
    const index = Math.min(Math.floor(place), stops.length - 2);
    const part = place - index;
    const mixed = stops[index].map((from, at) => from + (stops[index + 1][at] - from) * part);
    return `rgb(${mixed.map(Math.round).join(" ")})`;
  }

  // ---- What is drawn beside the lines ----

  function shadeSpans(plot, chart, theme) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = theme.span;
    for (const { from, to } of chart.spans) {
      const left = Math.max(plot.valToPos(from, "x", true), bbox.left);
      const right = Math.min(plot.valToPos(to, "x", true), bbox.left + bbox.width);
      if (right > left) ctx.fillRect(left, bbox.top, Math.max(right - left, 1), bbox.height);
    }
    ctx.restore();
  }

  function drawMarks(plot, chart, theme) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = theme.quiet;
    ctx.fillStyle = theme.quiet;
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    // Where each of the rows of labels is free again: a label takes the first that has room.
    const free = [-Infinity, -Infinity];
    for (const { at, label } of chart.marks) {
      const x = Math.round(plot.valToPos(at, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const width = ctx.measureText(label).width;
      const left = Math.min(x + 4 * ratio, bbox.left + bbox.width - width);
      const row = free.findIndex((from) => left >= from);
      if (row >= 0) {
        ctx.fillText(label, left, bbox.top + (2 + 13 * row) * ratio);
        free[row] = left + width + 6 * ratio;
      }
    }
    ctx.restore();
  }

  function drawHeat(plot, chart, theme) {
    const { ctx } = plot;
    const { column_s, edges_ns, columns } = chart.heat;
    const most = columns.reduce((max, counts) => Math.max(max, ...counts.slice(1)), 1);
    const rows = edges_ns.map((edge) => Math.round(plot.valToPos(edge, "y", true)));
    ctx.save();
    columns.forEach(([first, ...counts], index) => {
      const left = Math.round(plot.valToPos(index * column_s, "x", true));
      const right = Math.round(plot.valToPos((index + 1) * column_s, "x", true));
      counts.forEach((count, offset) => {
        if (count === 0) return;
        const row = first + offset;
        // By logarithm, so that the few slow ones are seen beside the many.
        ctx.fillStyle = heatColour(theme.heat, Math.log1p(count) / Math.log1p(most));
        const height = Math.max(rows[row] - rows[row + 1], 1);
        ctx.fillRect(left, rows[row + 1], Math.max(right - left, 1), height);
      });
    });
    ctx.restore();
  }

  // Bars from one end of an interval to the other.
  function drawIntervals(plot, chart, theme) {
    const { ctx } = plot;
    const ratio = devicePixelRatio;
    ctx.save();
    // A reader may have chosen a part of the axis.
    ctx.beginPath();
    ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
    ctx.clip();
    ctx.lineWidth = 1.5 * ratio;
    for (const { intervals, tint } of chart.series) {
      ctx.strokeStyle = theme.tints[tint - 1];
      (intervals || []).forEach((ends, index) => {
        if (ends === null) return;
        const x = plot.valToPos(chart.x[index], "x", true);
        const [low, high] = ends.map((end) => plot.valToPos(end, "y", true));
        ctx.beginPath();
        ctx.moveTo(x, low);
        ctx.lineTo(x, high);
        for (const end of [low, high]) {
          ctx.moveTo(x - 3 * ratio, end);
          ctx.lineTo(x + 3 * ratio, end);
        }
        ctx.stroke();
      });
    }
    ctx.restore();
  }

  // How many pixels of the plot have a colour: text and grid have none.
  function colouredPixels(plot) {
    const { left, top, width, height } = plot.bbox;
    const pixels = plot.ctx.getImageData(left, top, width, height).data;
    let count = 0;
    for (let at = 0; at < pixels.length; at += 4) {
      const [red, green, blue] = [pixels[at], pixels[at + 1], pixels[at + 2]];
      const spread = Math.max(red, green, blue) - Math.min(red, green, blue);
      if (pixels[at + 3] > 32 && spread > 24) count += 1;
    }
    return count;
  }

  // ---- A chart as uPlot takes it ----

  function axis(theme, label, unit, side, isLogarithmic) {
    const words = WORDS[unit];
    const isY = side === 3;
    return {
      side,
      stroke: theme.quiet,
      font: "12px system-ui, sans-serif",
      labelFont: "12px system-ui, sans-serif",
      label,
      labelSize: 22,
      labelGap: isY ? 0 : 2,
      gap: 4,
      grid: { stroke: theme.grid, width: 1 },
      ticks: { stroke: theme.grid, width: 1, size: 5 },
      space: isY ? 34 : unit === "rest" ? 52 : 64,
      size: isY ? (_, values) => widest(values) * 6.6 + 14 : 34,
      values: (_, splits) => splits.map((split) => (split === null ? "" : words(split))),
      ...(unit === "count" && !isLogarithmic ? { incrs: WHOLE_STEPS } : {}),
      ...(isLogarithmic ? { splits: unit === "rest" ? nines : roundValues } : {}),
      filter: (_, splits) => splits,
    };
  }

  const WHOLE_STEPS = Array.from({ length: 48 }, (_, at) => [1, 2, 5][at % 3] * 10 ** Math.floor(at / 3));

  function widest(values) {
    return (values || []).reduce((most, value) => Math.max(most, value ? value.length : 0), 4);
  }

  // The places of a logarithmic axis of percentiles: 0 %, 50 %, 90 %, 99 % and so on, as far as
  // there is room.
  function nines(self, _, min, max) {
    const decades = Math.max(Math.log10(max / min), 1);
    const room = self.bbox.width / devicePixelRatio / decades;
    const step = Math.ceil(72 / Math.max(room, 1));
    const places = room > 120 ? [2] : [];
    for (let power = 0; 10 ** power <= max * (1 + TINY); power += step) places.push(10 ** power);
    return places.filter((place) => place >= min * (1 - TINY)).sort((a, b) => a - b);
  }

  // The places of any other logarithmic axis: round values, as many as there is room for.
  function roundValues(_, __, min, max) {
    const decades = Math.log10(max / min);
    const places = [];
    if (decades < 0.6) {
      const step = niceStep((max - min) / 4);
      for (let at = Math.ceil(min / step) * step; at <= max; at += step) places.push(at);
      return places;
    }
    const digits = decades > 2.5 ? [1] : decades > 1.3 ? [1, 3] : [1, 2, 5];
    for (let power = Math.floor(Math.log10(min)); 10 ** power <= max; power += 1) {
      digits.forEach((digit) => places.push(digit * 10 ** power));
    }
    return places.filter((place) => place >= min && place <= max);
  }

  // 1, 2 or 5 of a power of ten, at least `least`.
  function niceStep(least) {
    const power = 10 ** Math.floor(Math.log10(least));
    return power * ([1, 2, 5].find((digit) => digit * power >= least) || 10);
  }

  function line(series, unit, theme) {
    const tint = theme.tints[series.tint - 1];
    const isPoints = series.shape === "points";
    return {
      label: series.name,
      stroke: tint,
      width: series.shape === "dashed" ? 1.25 : 1.75,
      dash: series.shape === "dashed" ? DASH : undefined,
      fill: series.shape === "area" ? `${tint}22` : undefined,
      points: { show: isPoints || hasLonely(series.values), size: isPoints ? 8 : 5, fill: tint },
      ...(isPoints ? { paths: () => null } : {}),
      value: (_, value) => (value === null || value === undefined ? "–" : WORDS[unit](value)),
    };
  }

  // What stands for a series in the legend: drawn as its line is.
  function marker(series, theme) {
    if (!series) return "none";
    const tint = theme.tints[series.tint - 1];
    const middle = "center / 14px 3px no-repeat";
    switch (series.shape) {
      case "dashed":
        return `repeating-linear-gradient(90deg, ${tint} 0 4px, transparent 4px 7px) ${middle}`;
      case "points":
        return `radial-gradient(circle, ${tint} 0 3.5px, transparent 4px) center / 14px 8px no-repeat`;
      default:
        return `linear-gradient(${tint}, ${tint}) ${middle}`;
    }
  }

  // Whether a value stands alone, so that no line goes through it.
  function hasLonely(values) {
    const isGap = (at) => values[at] === null || values[at] === undefined;
    return values.some((_, at) => !isGap(at) && isGap(at - 1) && isGap(at + 1));
  }

  function range(chart) {
    if (chart.heat) {
      const edges = chart.heat.edges_ns;
      return () => [edges[0], edges[edges.length - 1]];
    }
    // With the ends of intervals, which are drawn as bars.
    const ends = chart.series.flatMap((it) => (it.intervals || []).flatMap((pair) => pair || []));
    if (LOGARITHMIC.has(chart.y_unit)) {
      const above = ends.filter((end) => end > 0);
      return (_, min, max) =>
        min > 0 ? [Math.min(min, ...above) / 1.2, Math.max(max, ...above) * 1.2] : [1, 10];
    }
    // From zero: a difference looks as large as it is.
    return (_, min, max) => {
      const most = Math.max(max, 0, ...ends) * 1.08;
      const least = Math.min(min, 0, ...ends) * 1.08;
      return [least, most > least ? most : 1];
    };
  }

  // What is shown of the window: all of it, unless the reader chose a part.
  function zoomed(chart, min, max) {
    const isWhole = min <= chart.x[0] && max >= chart.x[chart.x.length - 1];
    return isWhole ? [0, Math.max(data.run.window_ns / 1e9, max)] : [min, max];
  }

  // Just beyond the last point, so that it is not on the edge.
  function ends(chart) {
    if (chart.x_unit === "rest") return (_, min, max) => [min, max * 1.2];
    if (chart.is_x_logarithmic) return (_, min, max) => [min / 1.1, max * 1.1];
    return (_, min, max) => {
      const beside = max > min ? (max - min) / 40 : 1;
      return [min - beside, max + beside];
    };
  }

  function plot(chart, place, theme) {
    const isOverTime = chart.x_unit === "seconds";
    const isLogarithmicX = chart.is_x_logarithmic || LOGARITHMIC.has(chart.x_unit);
    const drawn = (self) => {
      drawIntervals(self, chart, theme);
      drawMarks(self, chart, theme);
      if (place.dataset.drawn === undefined) place.dataset.drawn = colouredPixels(self);
    };
    const options = {
      width: place.clientWidth,
      height: HEIGHT,
      padding: [10, 22, 0, 0],
      scales: {
        x: {
          time: false,
          distr: isLogarithmicX ? 3 : 1,
          // The whole window, so that charts can be compared.
          range: isOverTime ? (_, min, max) => zoomed(chart, min, max) : ends(chart),
        },
        y: { distr: LOGARITHMIC.has(chart.y_unit) ? 3 : 1, range: range(chart) },
      },
      series: [
        {
          label: chart.x_label,
          value: (_, value) => (value === null ? "–" : WORDS[chart.x_unit](value)),
        },
        ...chart.series.map((series) => line(series, chart.y_unit, theme)),
      ],
      axes: [
        axis(theme, chart.x_label, chart.x_unit, 2, isLogarithmicX),
        axis(theme, chart.y_label, chart.y_unit, 3, LOGARITHMIC.has(chart.y_unit)),
      ],
      legend: { show: !chart.heat, markers: { width: 0, fill: (_, at) => marker(chart.series[at - 1], theme) } },
      cursor: {
        points: { size: 6 },
        ...(isOverTime ? { sync: { key: "time" } } : {}),
      },
      hooks: {
        drawClear: [(self) => shadeSpans(self, chart, theme)],
        draw: chart.heat ? [(self) => drawHeat(self, chart, theme), drawn] : [drawn],
      },
    };
    // A heat map has no lines, but its edges give the axes their scales.
    const values = chart.heat ? [chart.x.map(() => null)] : chart.series.map((it) => it.values);
    if (chart.heat) options.series.push({ label: "responses", stroke: theme.quiet });
    return new uPlot(options, [chart.x, ...values], place);
  }

  // ---- The figure of a chart ----

  function element(name, attributes, ...content) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...content);
    return made;
  }

  // With a table of its points for readers who do not see it.
  function figure(chart) {
    const { id, title, caption, heat, series, x_label, y_label } = chart;
    const names = series.map(({ name }) => name).join(", ");
    const lines = names ? ` Lines: ${names}.` : "";
    const label = `Chart: ${title}, ${y_label} by ${x_label}.${lines}`;
    const place = element("div", { class: "chart", "data-chart": id, role: "img", "aria-label": label });
    const heading = element("h3", {}, title);
    const head = element("figcaption", {}, heading, element("p", {}, caption));
    const summary = element("summary", {}, `${title} as a table`);
    const points = heat ? [] : [element("details", {}, summary, table(chart))];
    return { place, made: element("figure", { id }, head, place, ...points) };
  }

  function table({ x, x_label, x_unit, y_unit, series }) {
    const inWords = (value, unit) => (value === null || value === undefined ? "–" : WORDS[unit](value));
    const row = (name, cells) => element("tr", {}, ...cells.map((cell) => element(name, {}, cell)));
    const cell = ({ values, intervals }, at) => {
      const ends = intervals?.[at]?.map((end) => WORDS[y_unit](end));
      return inWords(values[at], y_unit) + (ends ? ` (${ends.join(" to ")})` : "");
    };
    const step = Math.ceil(x.length / ROWS_MAX);
    const rows = x.flatMap((place, at) => {
      const cells = () => series.map((line) => cell(line, at));
      return at % step === 0 ? [row("td", [inWords(place, x_unit), ...cells()])] : [];
    });
    const head = row("th", [x_label, ...series.map(({ name }) => name)]);
    const parts = [element("thead", {}, head), element("tbody", {}, ...rows)];
    return element("div", { class: "scroll" }, element("table", {}, ...parts));
  }

  // Each chart in the place of the page that it belongs to; a place without one goes.
  function placed() {
    const groups = chartsOf(data);
    return [...document.querySelectorAll("[data-group]")].flatMap((group) => {
      const figures = groups[group.dataset.group].map((chart) => ({ chart, ...figure(chart) }));
      if (figures.length === 0) group.remove();
      group.append(...figures.map(({ made }) => made));
      return figures;
    });
  }

  // ---- All of them, again whenever colours or widths change ----

  function drawAll() {
    plots.forEach(({ self }) => self.destroy());
    const theme = colours();
    plots = [];
    for (const { chart, place } of charts) plots.push({ place, self: plot(chart, place, theme) });
  }

  const charts = placed();
  drawAll();
  darkScheme.addEventListener("change", drawAll);
  new ResizeObserver(() => {
    for (const { place, self } of plots) {
      if (place.clientWidth > 0 && place.clientWidth !== self.width) {
        self.setSize({ width: place.clientWidth, height: HEIGHT });
      }
    }
  }).observe(document.querySelector("main"));
  // Paper is light, whatever the screen is.
  addEventListener("beforeprint", () => {
    root.classList.add("printing");
    drawAll();
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    drawAll();
  });
  root.dataset.charts = plots.length;
})();
