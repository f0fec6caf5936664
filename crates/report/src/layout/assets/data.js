// The charts of a page, made of the data in it: what they show, and in which words. charts.js draws
// them.
"use strict";
const { chartsOf, TINY, WORDS } = (() => {
  // Logarithms of powers of ten are off by less.
  const TINY = 1e-9;

  // ---- Numbers in words, as the text of the report has them ----

  function significant(value) {
    if (value === 0) return "0";
    const magnitude = Math.floor(Math.log10(Math.abs(value)) + TINY);
    const decimals = Math.min(Math.max(2 - magnitude, 0), 9);
    return value.toLocaleString("en-US", { maximumFractionDigits: decimals });
  }

  function scaled(value, steps) {
    let text = "";
    for (const [scale, unit] of steps) {
      text = `${significant(value / scale)} ${unit}`;
      if (Math.abs(value) < scale * 1000) break;
    }
    return text;
  }

  // The quantile above which one in `rest` lies, in percent.
  function quantile(rest) {
    return `${+((1 - 1 / Math.max(rest, 1)) * 100).toFixed(6)} %`;
  }

  const WORDS = {
    seconds: (value) => `${significant(value)} s`,
    duration: (value) => scaled(value, [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]]),
    per_second: (value) => `${significant(value)}/s`,
    share: (value) => `${significant(value * 100)} %`,
    cpus: (value) => significant(value),
    bytes: (value) => scaled(value, [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"]]),
    bits_per_second: (value) =>
      scaled(value, [[1, "bit/s"], [1e3, "kbit/s"], [1e6, "Mbit/s"], [1e9, "Gbit/s"]]),
    count: (value) => significant(value),
    rest: quantile,
  };

  // ---- Lines ----

  const NS_PER_S = 1e9;
  const isKnown = (value) => value !== null && value !== undefined;
  const line = (name, tint, values, shape = "line") => ({ name, tint, shape, values });

  // A chart over the time of the window, unless `more` says something else.
  function chart(id, title, [y_label, y_unit], caption, x, series, more) {
    return {
      id,
      title,
      caption,
      x_label: "time in the window",
      x_unit: "seconds",
      y_label,
      y_unit,
      x,
      series: series.filter(({ values }) => values.some(isKnown)),
      spans: [],
      marks: [],
      ...more,
    };
  }

  // Lines whose points are at places of their own, over all of these: straight between two points
  // on an axis of this scale.
  function together(lines, scale) {
    const places = lines.flatMap(({ points }) => points.map(([place]) => place));
    const x = [...new Set(places)].sort((one, other) => one - other);
    const valueAt = (points, place) => {
      const next = points.findIndex(([to]) => to >= place);
      if (next < 0) return null;
      const [to, value] = points[next];
      if (to === place) return value;
      if (next === 0) return null;
      const [from, before] = points[next - 1];
      const part = (scale(place) - scale(from)) / (scale(to) - scale(from));
      return before + (value - before) * part;
    };
    const valued = lines.map(({ points, ...rest }) => {
      return { ...rest, values: x.map((place) => valueAt(points, place)) };
    });
    return [x, valued];
  }

  // ---- A run ----

  function ofRun(run) {
    const { series, window_ns } = run;
    const stages = run.schedule ? run.schedule.stages : [];
    const beside = { spans: run.stolen_s, marks: marksOf(stages, window_ns) };
    const withSpans = (words) =>
      words + (run.stolen_s.length > 0 ? " Shaded: the hypervisor took CPU time." : "");
    const lengthOf = (at, step_ns) => Math.max(Math.min(window_ns - at * step_ns, step_ns), 1);
    const middles = (steps, step_ns) =>
      steps.map((_, at) => (at * step_ns + lengthOf(at, step_ns) / 2) / NS_PER_S);
    // A chart with a value for each step.
    const { points, interval_ns } = series;
    const stepped = (id, title, y, what, lines, steps = points, step_ns = interval_ns) => {
      const caption = withSpans(`${what}: a point per ${WORDS.duration(step_ns)}.`);
      return chart(id, title, y, caption, middles(steps, step_ns), lines, beside);
    };
    const read = (id, title, y, words, lines) =>
      chart(id, title, y, withSpans(words), ...together(lines, (place) => place), beside);
    const of = (value) => points.map(value);
    // A sliver of a step at the end of the window tells nothing.
    const perS = (name) =>
      of((point, at) => {
        const length_ns = lengthOf(at, interval_ns);
        if (length_ns * 4 < interval_ns) return null;
        return (point[name] * NS_PER_S) / length_ns;
      });

    const planned = middles(points, interval_ns).map((at_s) =>
      run.is_open ? plannedPerS(run.schedule, at_s) : null,
    );
    const throughput = stepped(
      "throughput",
      "Throughput",
      ["successful replies per second", "per_second"],
      run.has_statuses ? "Replies with a status below 400" : "Replies",
      [line("successful", 1, perS("successes"), "area"), line("planned", 4, planned, "dashed")],
    );
    const errors = stepped(
      "errors",
      "Errors",
      ["events per second", "per_second"],
      `${run.has_statuses ? "Replies with a status of 400 and above, and what" : "What"} failed`,
      [
        line("error statuses", 2, perS("errors")),
        line("failures", 5, perS("failures"), "dashed"),
      ].filter(isDrawn),
    );
    const waiting = stepped(
      "waiting",
      "Waiting for a connection",
      ["most that waited at once", "count"],
      "Requests that were due and found no connection free",
      [line("waiting", 2, of((point) => point.waiting_max), "area")],
    );
    const [{ live_min: fewest } = {}] = points;
    const isSteady = ({ live_min, live_max }) => live_min === fewest && live_max === fewest;
    const connections = stepped(
      "connections",
      "Connections",
      ["open connections", "count"],
      "Open at once",
      [
        line("most", 1, of((point) => point.live_max)),
        line("fewest", 4, of((point) => point.live_min), "dashed"),
      ],
    );
    const { latency } = run;
    const response = stepped(
      "latency",
      "Response time",
      ["response time", "duration"],
      "Successful replies, by when they were complete",
      [
        line("max", 4, latency.max_ns, "dashed"),
        line("p99", 2, latency.p99_ns),
        line("p90", 3, latency.p90_ns),
        line("p50", 1, latency.p50_ns),
      ],
      latency.max_ns,
      latency.interval_ns,
    );
    const share = ({ stamped_response_ns: all_ns, stamped_own_ns: own_ns }) =>
      all_ns > 0 ? Math.min(own_ns / all_ns, 1) : null;
    const own = stepped(
      "own",
      "brunt's own share",
      ["share of the response times", "share"],
      "On connections with kernel stamps, of all response times",
      [line("own share", 5, of(share), "area")],
    );
    const server = run.server || [];
    const used = (readings) => usedPerS(readings, interval_ns);
    const cpu = read("cpu", "CPU", ["CPUs used", "cpus"], "User space and kernel.", [
      ...run.clients.map(({ name, cpu }) => ({ ...line(name, 1), points: used(cpu) })),
      {
        ...line("server", 2),
        points: used(server.map((it) => [it.at_ns, it.cpu_user_ns + it.cpu_system_ns])),
      },
      {
        ...line("server, kernel", 4, [], "dashed"),
        points: used(server.map((it) => [it.at_ns, it.cpu_system_ns])),
      },
    ]);
    const resident = server.filter((it) => isKnown(it.resident_bytes));
    const memory = read(
      "memory",
      "Memory of the server",
      ["resident memory", "bytes"],
      "As its processes had it.",
      [
        {
          ...line("resident", 2),
          points: resident.map((it) => [it.at_ns / NS_PER_S, it.resident_bytes]),
        },
      ],
    );
    return {
      requests: [
        ...ofStreams(run),
        ...(run.has_rates ? [throughput] : []),
        errors,
        waiting,
        ...(points.every(isSteady) ? [] : [connections]),
      ],
      latency: [response, percentiles(run), heatMap(run)],
      resources: [cpu, memory, own],
    };
  }

  // Where the stages begin, beyond the first; none where there are too many to tell apart.
  function marksOf(stages, window_ns) {
    if (stages.length > 24) return [];
    let at_ns = 0;
    const marks = stages.map(({ duration_ns }, index) => {
      const mark = { at: at_ns / NS_PER_S, label: `stage ${index + 1}` };
      at_ns += duration_ns;
      return mark;
    });
    return marks.slice(1).filter(({ at }) => at < window_ns / NS_PER_S);
  }

  // Arrivals that a schedule has per second at an instant of the window; null after its end.
  function plannedPerS({ rate_per_s, stages }, at_s) {
    if (isKnown(rate_per_s)) return rate_per_s;
    let from_s = 0;
    for (const { duration_ns, from_per_s, to_per_s } of stages) {
      const part = (at_s - from_s) / (duration_ns / NS_PER_S);
      if (part < 1) return from_per_s + (to_per_s - from_per_s) * part;
      from_s += duration_ns / NS_PER_S;
    }
    return null;
  }

  // What was used per second between readings of a sum that are about a step apart at least, each
  // at the end of its stretch.
  function usedPerS(readings, step_ns) {
    const used = [];
    let from = readings[0];
    for (const [at_ns, sum_ns] of readings) {
      const length_ns = at_ns - from[0];
      // A reading is never exactly when it is due.
      if (length_ns === 0 || length_ns < step_ns - step_ns / 8) continue;
      used.push([at_ns / NS_PER_S, (sum_ns - from[1]) / length_ns]);
      from = [at_ns, sum_ns];
    }
    return used;
  }

  function ofStreams({ bandwidth }) {
    if (!bandwidth) return [];
    const x = bandwidth.intervals.map((it) => (it.from_ns + it.to_ns) / 2 / NS_PER_S);
    const bits = (name) => bandwidth.intervals.map((it) => it[name] * 8);
    const lines = [
      ...(bandwidth.sends ? [line("acknowledged", 1, bits("up_bytes_per_s"), "area")] : []),
      ...(bandwidth.receives ? [line("received", 3, bits("down_bytes_per_s"))] : []),
    ];
    const y = ["bits per second", "bits_per_second"];
    const caption = "By the kernel's accounts of all streams.";
    return [chart("bandwidth", "Bandwidth", y, caption, x, lines)];
  }

  // Response times over the part above them, so that each nine takes the same room.
  function percentiles({ spectra }) {
    const pointsOf = ({ steps, count }, wanted) => {
      const points = [];
      const most = Math.max(count, 2);
      for (const { quantile, ns } of steps.filter(wanted)) {
        // The longest stands where one in all of them does.
        const rest = quantile < 1 ? Math.min(1 / (1 - quantile), most) : most;
        const last = points[points.length - 1];
        // Steps beyond the last response time repeat it.
        if (last && last[0] >= rest) last[1] = Math.max(last[1], ns);
        else points.push([rest, ns]);
      }
      return points;
    };
    const { response, service, rest } = spectra;
    const [x, lines] = together(
      [
        { ...line("response time", 1), points: pointsOf(response, (it) => !it.is_bound) },
        { ...line("at least", 2, [], "dashed"), points: pointsOf(response, (it) => it.is_bound) },
        { ...line("since sent", 3, [], "dashed"), points: pointsOf(service, () => true) },
        { ...line("without brunt's share", 4, [], "dashed"), points: pointsOf(rest, () => true) },
      ],
      Math.log,
    );
    const y = ["response time", "duration"];
    const caption = "How long the slowest took: each further nine has the same room.";
    const axis = { x_label: "percentile", x_unit: "rest" };
    return chart("percentiles", "Percentiles", y, caption, x, lines, axis);
  }

  function heatMap({ heat }) {
    const { interval_ns, rows_per_doubling, columns } = heat;
    const column_s = interval_ns / NS_PER_S;
    const filled = columns.filter(([first]) => isKnown(first));
    const lowest = Math.min(...filled.map(([first]) => first));
    const rows = Math.max(...filled.map((column) => column[0] + column.length - 1)) - lowest;
    const edges_ns = Array.from({ length: Math.max(rows + 1, 0) }, (_, row) => {
      return 2 ** ((lowest + row) / rows_per_doubling);
    });
    const x = Array.from({ length: columns.length + 1 }, (_, at) => at * column_s);
    const caption = "How many responses took how long, when: the stronger the colour, the more.";
    const shifted = columns.map(([first, ...counts]) => {
      return isKnown(first) ? [first - lowest, ...counts] : [];
    });
    return chart("heat", "Heat map", ["response time", "duration"], caption, x, [], {
      heat: filled.length > 0 ? { column_s, edges_ns, columns: shifted } : undefined,
    });
  }

  // ---- Experiments ----

  function ofSweep({ varied, values, points }) {
    const [least, most] = [values[0], values[values.length - 1]];
    const along = {
      x_label: varied,
      x_unit: { rate: "per_second", "body bytes": "bytes" }[varied] || "count",
      is_x_logarithmic: least > 0 && most / least >= 50,
    };
    const draw = (id, title, y, caption, lines) =>
      chart(id, title, y, caption, values, lines, along);
    // Medians with their intervals, or what was least and most where there is none.
    const medians = (name, tint, figure) => {
      const spreads = points.map((point) => point[figure]);
      const ends = ({ low, high, min, max }) => [low ?? min, high ?? max];
      const intervals = spreads.map((spread) => (spread ? ends(spread) : null));
      return { ...line(name, tint, spreads.map((spread) => spread?.median ?? null)), intervals };
    };
    const both = (figure) => [
      line("server", 2, points.map((point) => figure(point, "server"))),
      line("brunt", 1, points.map((point) => figure(point, "client")), "dashed"),
    ];
    const bars = points.some(({ rounds }) => rounds >= 6)
      ? "Medians of the rounds; bars are their 95 % intervals."
      : "Medians of the rounds; bars go from the least to the most.";
    const cpus = (point, side) => {
      const [user, system] = [point[`${side}_user_cpus`], point[`${side}_system_cpus`]];
      return user && system ? user.median + system.median : null;
    };
    const of = "User space and kernel, medians of the rounds.";
    return [
      draw("throughput", "Throughput", ["successful replies per second", "per_second"], bars, [
        medians("successful", 1, "successes_per_s"),
      ]),
      draw("latency", "Response time", ["response time", "duration"], bars, [
        medians("p99", 2, "response_p99_ns"),
        medians("p90", 3, "response_p90_ns"),
        medians("p50", 1, "response_p50_ns"),
      ]),
      draw("errors", "Errors", ["requests without success", "share"], bars, [
        medians("without success", 5, "error_share"),
      ]),
      draw("cpu", "CPU", ["CPUs used", "cpus"], of, both(cpus)),
      draw(
        "memory",
        "Memory",
        ["resident memory", "bytes"],
        "The most of all rounds.",
        both((point, side) => point[`${side}_resident_bytes`]?.max ?? null),
      ),
    ];
  }

  // The ratio of each pair of rounds, and the estimate with its interval.
  function ofPair({ compared, first, second, place, ratios, change }) {
    const x = ratios.map((_, at) => at + 1);
    // Of a bound one end is not known.
    const isDrawable = (value) => isKnown(value) && value > -1;
    const estimates = [
      ["estimate", 2, change?.value],
      ["97.5 % from", 4, change?.low, "dashed"],
      ["to", 4, change?.high, "dashed"],
    ].filter(([, , value]) => isDrawable(value));
    const lines = [
      line("pair", 1, ratios, "points"),
      ...estimates.map(([name, tint, value, shape]) =>
        line(name, tint, x.map(() => value), shape),
      ),
    ];
    const id = `ratios-${compared.replace(/[^A-Za-z0-9]/g, "-")}-${place}`;
    const title = `${compared}: ${second} against ${first}`;
    const caption = `Each point is a round of ${second} over the one of ${first} beside it.`;
    const axis = { x_label: "pair of rounds", x_unit: "count" };
    return chart(id, title, ["change", "share"], caption, x, lines, axis);
  }

  // The rates that were tried, by their outcome.
  function ofSearch({ steps }) {
    const x = steps.map((_, at) => at + 1);
    const tints = { met: 3, missed: 2, client_limited: 5, undecided: 4, invalid: 1 };
    const lines = [
      line("rate", 6, steps.map(([rate]) => rate), "dashed"),
      ...Object.entries(tints).map(([outcome, tint]) => {
        const values = steps.map(([rate, found]) => (found === outcome ? rate : null));
        return line(outcome.replace("_", "-"), tint, values, "points");
      }),
    ];
    const y = ["requests planned per second", "per_second"];
    const caption = "The outcome of each step.";
    const axis = { x_label: "step", x_unit: "count" };
    return chart("steps-tried", "Rates that were tried", y, caption, x, lines, axis);
  }

  const isDrawn = ({ values }) => values.some((value) => isKnown(value) && value !== 0);

  // The charts that have something to show, by the places of the page that they belong to.
  function chartsOf({ run, sweep, pairs, search }) {
    const groups = {
      ...(run ? ofRun(run) : {}),
      sweep: sweep ? ofSweep(sweep) : [],
      pairs: (pairs || []).map(ofPair),
      search: search ? [ofSearch(search)] : [],
    };
    const isFilled = ({ heat, series }) => heat || series.some(isDrawn);
    const filled = ([place, charts]) => [place, charts.filter(isFilled)];
    return Object.fromEntries(Object.entries(groups).map(filled));
  }

  return { chartsOf, TINY, WORDS };
})();
