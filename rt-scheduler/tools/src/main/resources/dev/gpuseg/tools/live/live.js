/* SPDX-License-Identifier: Apache-2.0 */
'use strict';
(() => {
  const POLL_MS = 250, DELAY_NS = 600e6, KEEP_NS = 60e9, LANE = 30, AXIS = 20;
  const WINDOWS_S = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 40];
  const COLUMNS_PER_OCTAVE = 6, LOWEST_NS = 1000;
  const PALETTE = ['#2f7ed8', '#e8743b', '#19a979', '#ed4a7b', '#945ecf', '#13a4b4', '#b0892b', '#5c8a1f', '#6c8893',
    '#bf399e'];
  const WAITING = 1, RUNNING = 2, PREEMPTED = 3, OFF = 4;
  const id = name => document.getElementById(name);
  const canvas = id('timeline'), draw2d = canvas.getContext('2d');
  let view = null, next = -1, incarnation = null, spans = [], offSpans = [], clockNs = null;
  let windowS = 5, paused = false, pausedAtNs = 0, panNs = 0, failures = 0, lanes = [], misses = [], series = {};
  let previous = null, colours = {}, wallMs = null;
  const marks = new Map();

  // ---- words and numbers ------------------------------------------------------------------------------------------
  const duration = ns => ns == null || ns < 0 ? '–' : ns < 1e3 ? ns.toFixed(0) + ' ns' : ns < 1e6
    ? (ns / 1e3).toFixed(ns < 1e4 ? 1 : 0) + ' µs' : ns < 1e9 ? (ns / 1e6).toFixed(ns < 1e7 ? 2 : ns < 1e8 ? 1 : 0)
    + ' ms' : (ns / 1e9).toFixed(2) + ' s';
  const age = ns => { const s = ns / 1e9; return s < 60 ? s.toFixed(1) + ' s' : s < 3600
    ? Math.floor(s / 60) + ' min ' + Math.floor(s % 60) + ' s' : Math.floor(s / 3600) + ' h ' + Math.floor(s / 60 % 60)
    + ' min'; };
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = key => colours[key] || (colours[key] = PALETTE[Object.keys(colours).length % PALETTE.length]);
  // white or dark, whichever is easier to read on it (WCAG's contrast)
  const ink = fill => {
    const [r, g, b] = [1, 3, 5].map(i => parseInt(fill.slice(i, i + 2), 16) / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4));
    const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    return 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.0625 ? '#ffffff' : '#101923';
  };
  const byKey = key => view && view.tasks.find(t => t.key === key);
  const response = t => t.job_response_ns;
  const wall = ns => new Date(wallMs + ns / 1e6).toISOString().slice(11, 23);   // UTC

  function element(tag, className, text) {
    const e = document.createElement(tag);
    if (className) { e.className = className; }
    if (text !== undefined) { e.textContent = text; }
    return e;
  }

  // ---- the feed ---------------------------------------------------------------------------------------------------
  async function poll() {
    try {
      const answer = await fetch('feed?since=' + next, {cache: 'no-store'});
      if (!answer.ok) { throw new Error((await answer.text()).trim()); }
      take(await answer.json());
      failures = 0;
    } catch (error) {
      failures++;
      status();
      id('status').title = String(error.message || error);
    }
    setTimeout(poll, failures ? 1000 : POLL_MS);
  }

  function take(fresh) {
    if (incarnation !== fresh.daemon.incarnation_ns) {   // another daemon: nothing of the old one fits
      incarnation = fresh.daemon.incarnation_ns;
      spans = []; offSpans = []; clockNs = null; series = {}; previous = null; paused = false; panNs = 0; colours = {};
      marks.clear();
      if (next !== -1) { next = -1; return; }
    }
    view = fresh;
    next = fresh.spans.next;
    const offset = fresh.now_ns - performance.now() * 1e6;
    const wallNow = fresh.wall_ms - fresh.now_ns / 1e6;   // its millisecond must not make labels tremble
    wallMs = wallMs === null || Math.abs(wallNow - wallMs) > 50 ? wallNow : wallMs;
    clockNs = clockNs === null || Math.abs(offset - clockNs) > 1e9 ? offset : clockNs + 0.1 * (offset - clockNs);
    for (const s of fresh.spans.list) { (s[0] === OFF ? offSpans : spans).push(s); }
    const old = fresh.now_ns - KEEP_NS;
    if (!paused) {
      if (spans.length && spans[0][3] < old) { spans = spans.filter(s => s[3] >= old); }
      if (offSpans.length && offSpans[0][3] < old) { offSpans = offSpans.filter(s => s[3] >= old); }
    }
    misses = fresh.misses;
    misses.forEach(m => marks.set(m.number, m));
    if (!paused) { marks.forEach((m, n) => { if (m.time_ns < old) { marks.delete(n); } }); }
    fresh.tasks.sort((a, b) => b.priority - a.priority || a.key - b.key);
    status(); head(); tiles(); labels(); tasks(); histograms(); missLog(); counters();
  }

  function status() {
    const e = id('status');
    e.className = 'status' + (failures ? ' bad' : paused ? ' paused' : '');
    e.textContent = failures ? 'no answer from the daemon' : paused ? 'paused' : 'live';
  }

  function chip(name, label, value) {
    const e = id(name);
    e.replaceChildren(label + ' ', element('b', '', value));
  }

  function head() {
    chip('policy', 'policy', view.policy);
    chip('mechanism', 'mechanism', view.daemon.mechanism + ' · ' + view.daemon.level_name);
    id('mechanism').title = view.daemon.consequence;
    chip('uptime', 'up', age(view.daemon.uptime_ns));
    id('simulated').hidden = !view.daemon.simulated;
    document.title = (view.counters.job_misses ? '(' + view.counters.job_misses + ' misses) ' : '')
      + 'gpuseg live';
  }

  // ---- tiles ------------------------------------------------------------------------------------------------------
  function tiles() {
    const c = view.counters, dt = previous ? (view.now_ns - previous.now_ns) / 1e9 : 0;
    const rate = name => dt > 0 ? (c[name] - previous.counters[name]) / dt : 0;
    const gpu = view.gpus[0] || {busy_share: 0, running: 0, enforcement_ns: {count: 0}};
    const holder = byKey(gpu.holder);
    const list = [
      ['GPU in use', (100 * gpu.busy_share).toFixed(1) + ' %', 100 * gpu.busy_share, false],
      ['held by', holder ? holder.name : gpu.running ? 'best effort' : 'nobody', gpu.running, false],
      ['segments / s', rate('begins').toFixed(0), rate('begins'), false],
      ['preemptions / s', rate('preemptions').toFixed(0), rate('preemptions'), false],
      ['deadline misses', String(c.job_misses), rate('job_misses'), c.job_misses > 0],
      ['enforcement p99', gpu.enforcement_ns.count ? duration(gpu.enforcement_ns.p99) : '–',
        gpu.enforcement_ns.count ? gpu.enforcement_ns.last : 0, false],
      ['contexts held off', String(view.daemon.held_contexts), view.daemon.held_contexts, false],
      ['longest cycle', duration(c.max_cycle_ns), 0, false]];
    previous = {now_ns: view.now_ns, counters: c};
    const box = id('tiles');
    list.forEach(([name, value, level, bad], i) => {
      let tile = box.children[i];
      if (!tile) {
        tile = element('div', 'tile');
        tile.append(element('div', 'name', name), element('div', 'value'), element('canvas'));
        box.append(tile);
      }
      tile.children[1].textContent = value;
      tile.children[1].title = value;
      tile.children[1].className = 'value' + (bad ? ' bad' : '');
      const points = series[name] || (series[name] = []);
      if (!paused) { points.push(level); }
      if (points.length > 120) { points.shift(); }
      sparkline(tile.children[2], points, bad ? css('--bad') : css('--accent'));
    });
  }

  function fit(c, height) {
    const scale = window.devicePixelRatio || 1, width = c.clientWidth;
    const w = Math.round(width * scale), h = Math.round(height * scale);
    if (c.width !== w || c.height !== h) { c.width = w; c.height = h; }
    const g = c.getContext('2d');
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.clearRect(0, 0, width, height);
    return [g, width];
  }

  function sparkline(c, points, stroke) {
    const [g, width] = fit(c, 24);
    const top = Math.max(...points, 1e-9);
    g.strokeStyle = stroke; g.lineWidth = 1.25; g.globalAlpha = 0.85;
    g.beginPath();
    points.forEach((p, i) => g.lineTo(width - (points.length - 1 - i) * width / 119, 22 - 19 * p / top));
    g.stroke();
    g.globalAlpha = 1;
  }

  // ---- the timeline -----------------------------------------------------------------------------------------------
  function labels() {
    const gpus = view.gpus.map(g => ({gpu: g.gpu}));
    const shown = view.tasks.filter(t => t.open || spans.some(s => s[1] === t.key)).slice(0, 40);
    lanes = gpus.concat(shown.map(t => ({task: t})));
    const box = id('labels');
    while (box.children.length > lanes.length) { box.lastChild.remove(); }
    lanes.forEach((lane, i) => {
      let e = box.children[i];
      if (!e) {
        e = element('div');
        e.append(element('i'), element('span'), element('small'));
        box.append(e);
      }
      const t = lane.task;
      e.children[0].style.background = t ? colour(t.key) : 'transparent';
      e.children[1].textContent = t ? t.name : 'GPU ' + lane.gpu;
      e.children[1].style.fontWeight = t ? '400' : '600';
      e.children[2].textContent = t ? (t.priority ? t.priority : 'BE') : 'holder';
      e.title = t ? t.name + ', pid ' + t.pid + ', client ' + t.client : '';
    });
  }

  const nowNs = () => paused ? pausedAtNs : Math.min(performance.now() * 1e6 + clockNs - DELAY_NS,
    view.now_ns);

  function allSpans() {
    const open = [];
    for (const t of view.tasks) {
      const kind = {waiting: WAITING, running: RUNNING, preempted: PREEMPTED}[t.state];
      if (kind && t.open) { open.push([kind, t.key, t.state_since_ns, view.now_ns, t.preempted_by]); }
    }
    return open;
  }

  function frame() {
    requestAnimationFrame(frame);
    if (!view || clockNs === null || document.hidden) { return; }
    const height = lanes.length * LANE + AXIS;
    canvas.style.height = height + 'px';
    const [g, width] = fit(canvas, height);
    const end = nowNs() + panNs, ns = windowS * 1e9, from = end - ns, x = t => (t - from) / ns * width;
    const laneOf = {}, taskOf = {};
    lanes.forEach((lane, i) => { if (lane.task) { laneOf[lane.task.key] = i; taskOf[lane.task.key] = lane.task; } });
    lanes.forEach((lane, i) => {
      g.fillStyle = css('--lane');
      g.fillRect(0, i * LANE + 3, width, LANE - 6);
    });
    grid(g, width, height, from, end, x);
    const hatch = pattern(g), open = allSpans();
    const paint = s => {
      const lane = laneOf[s[1]];
      if (lane === undefined || s[3] < from || s[2] > end) { return; }
      const a = Math.max(0, x(s[2])), b = Math.min(width, x(s[3])), w = Math.max(1, b - a), y = lane * LANE + 3;
      if (s[0] === RUNNING) {
        g.fillStyle = colour(s[1]);
        g.fillRect(a, y + 1, w, LANE - 11);
        const gpuLane = lanes.findIndex(l => !l.task && l.gpu === taskOf[s[1]].gpu);
        const real = taskOf[s[1]].priority > 0;
        g.globalAlpha = real ? 1 : 0.45;
        g.fillRect(a, gpuLane * LANE + (real ? 4 : 9), w, real ? LANE - 8 : LANE - 18);
        g.globalAlpha = 1;
        const name = taskOf[s[1]].name;
        if (w > 8 * name.length + 8) {
          g.fillStyle = ink(colour(s[1])); g.font = '11px system-ui, sans-serif'; g.textBaseline = 'middle';
          g.fillText(name, a + 5, y + (LANE - 10) / 2 + 1);
          if (real) { g.fillText(name, a + 5, gpuLane * LANE + LANE / 2); }
        }
      } else if (s[0] === WAITING) {
        g.globalAlpha = 0.5; g.fillStyle = css('--wait'); g.fillRect(a, y + 6, w, LANE - 21); g.globalAlpha = 1;
      } else {
        g.fillStyle = hatch; g.fillRect(a, y + 3, w, LANE - 15);
      }
    };
    spans.forEach(paint);
    open.forEach(paint);
    const offNow = (view.contexts_off || []).map(c => [OFF, c[0], c[2], view.now_ns, c[1]]);
    g.fillStyle = css('--off');
    for (const s of offSpans.concat(offNow)) {
      if (s[3] < from || s[2] > end) { continue; }
      for (const lane of lanes) {
        if (lane.task && lane.task.context === s[1] && lane.task.open) {
          const a = Math.max(0, x(s[2]));
          g.fillRect(a, laneOf[lane.task.key] * LANE + LANE - 6, Math.max(1, Math.min(width, x(s[3])) - a), 2.5);
        }
      }
    }
    g.fillStyle = css('--bad');
    for (const m of marks.values()) {
      const lane = laneOf[m.key];
      if (lane !== undefined && m.time_ns >= from && m.time_ns <= end) {
        const at = x(m.time_ns), y = lane * LANE + 1;
        g.beginPath(); g.moveTo(at - 5, y); g.lineTo(at + 5, y); g.lineTo(at, y + 9); g.fill();
        g.fillRect(at - 0.5, y + 9, 1, LANE - 14);
      }
    }
    id('window').textContent = windowS < 1 ? windowS * 1000 + ' ms' : windowS + ' s';
  }

  let hatchOf = null;
  function pattern(g) {
    const tint = css('--pre');
    if (!hatchOf || hatchOf.tint !== tint) {
      const tile = document.createElement('canvas');
      tile.width = tile.height = 6;
      const p = tile.getContext('2d');
      p.strokeStyle = tint; p.lineWidth = 1.6;
      p.beginPath(); p.moveTo(-1, 7); p.lineTo(7, -1); p.moveTo(-1, 1); p.lineTo(1, -1); p.moveTo(5, 7); p.lineTo(7, 5);
      p.stroke();
      hatchOf = {tint, fill: g.createPattern(tile, 'repeat')};
    }
    return hatchOf.fill;
  }

  function grid(g, width, height, from, end, x) {
    const target = (end - from) / Math.max(2, width / 110), power = Math.pow(10, Math.floor(Math.log10(target)));
    const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= target);
    g.strokeStyle = css('--line'); g.fillStyle = css('--dim'); g.lineWidth = 1;
    g.font = '11px system-ui, sans-serif'; g.textBaseline = 'alphabetic';
    const latest = view.now_ns - DELAY_NS;
    const base = (wallMs * 1e6) % step;   // round numbers of the wall clock
    for (let t = Math.ceil((from + base) / step) * step - base; t <= end; t += step) {
      const at = Math.round(x(t)) + 0.5;
      g.beginPath(); g.moveTo(at, 0); g.lineTo(at, height - AXIS + 3); g.stroke();
      const text = step >= 1e9 ? wall(t).slice(0, 8) : step >= 1e6 ? wall(t).slice(3) : ((t - latest) / 1e6).toFixed(3)
        + ' ms';
      if (at > 28 && at < width - 28) { g.textAlign = 'center'; g.fillText(text, at, height - 4); }
    }
    g.textAlign = 'left';
  }

  function zoom(direction, aboutFraction) {
    const i = WINDOWS_S.indexOf(windowS), j = Math.max(0, Math.min(WINDOWS_S.length - 1, i + direction));
    if (paused && aboutFraction !== undefined) {   // keep what is under the pointer
      panNs += (WINDOWS_S[j] - windowS) * 1e9 * (1 - aboutFraction);
    }
    windowS = WINDOWS_S[j];
  }

  function pause(on) {
    if (!view) { return; }
    if (on && !paused) { pausedAtNs = nowNs(); }
    paused = on;
    if (!on) { panNs = 0; }
    id('pause').textContent = on ? 'Resume' : 'Pause';
    status();
  }

  let drag = null;
  canvas.addEventListener('wheel', e => {
    e.preventDefault();
    zoom(e.deltaY > 0 ? 1 : -1, e.offsetX / canvas.clientWidth);
  }, {passive: false});
  canvas.addEventListener('pointerdown', e => {
    drag = {x: e.clientX, panNs};
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener('pointermove', e => {
    if (drag) {
      if (Math.abs(e.clientX - drag.x) > 3) { pause(true); }
      panNs = Math.min(0, drag.panNs - (e.clientX - drag.x) / canvas.clientWidth * windowS * 1e9);
    }
    tip(e);
  });
  canvas.addEventListener('pointerup', () => { drag = null; });
  canvas.addEventListener('pointerleave', () => { id('tip').hidden = true; });
  canvas.addEventListener('dblclick', () => pause(false));

  function tip(e) {
    const box = id('tip'), lane = lanes[Math.floor(e.offsetY / LANE)];
    if (!view || !lane) { box.hidden = true; return; }
    const end = nowNs() + panNs, at = end - windowS * 1e9 * (1 - e.offsetX / canvas.clientWidth);
    const slack = windowS * 1e9 * 2 / canvas.clientWidth;
    const inLane = s => lane.task ? s[1] === lane.task.key : s[0] === RUNNING && (byKey(s[1]) || {}).gpu === lane.gpu;
    const hits = spans.concat(allSpans()).filter(s => inLane(s) && s[2] - slack <= at && at <= s[3] + slack);
    const lines = hits.slice(-4).map(s => {
      const other = byKey(s[4]), name = lane.task ? '' : (byKey(s[1]) || {name: '?'}).name + ' ';
      return name + ['', 'waiting', 'running', 'preempted'][s[0]]
        + (other ? (s[0] === PREEMPTED ? ' by ' : ' for ') + other.name : '') + '  ' + duration(s[3] - s[2]);
    });
    box.hidden = lines.length === 0;
    box.textContent = (lane.task ? lane.task.name : 'GPU ' + lane.gpu) + '  ' + wall(at) + '\n' + lines.join('\n');
    box.style.left = Math.max(0, Math.min(canvas.clientWidth - box.offsetWidth - 4, e.offsetX + 14)) + 'px';
    box.style.top = (Math.floor(e.offsetY / LANE) + 1) * LANE + 'px';
  }

  // ---- tables -----------------------------------------------------------------------------------------------------
  function cells(row, values) {
    values.forEach(([text, className], i) => {
      const cell = row.children[i] || row.appendChild(element('td'));
      if (cell.textContent !== text) { cell.textContent = text; }
      cell.className = className || '';
    });
  }

  function rowsOf(table, count) {
    const body = id(table).tBodies[0];
    while (body.rows.length > count) { body.lastChild.remove(); }
    while (body.rows.length < count) { body.append(element('tr')); }
    return body.rows;
  }

  const count = v => [String(v), 'n' + (v ? '' : ' zero')];
  const alarm = v => [String(v), 'n ' + (v ? 'bad' : 'zero')];
  const limit = t => t.priority ? t.deadline_ns : 0;   // best effort is never late
  const limited = (ns, most) => [duration(ns), 'n' + (most > 0 && ns > most ? ' bad' : '')];

  function tasks() {
    const list = view.tasks.slice(0, 100), rows = rowsOf('tasks', list.length);
    list.forEach((t, i) => {
      const row = rows[i], r = response(t);
      row.className = t.open ? '' : 'closed';
      row.dataset.task = t.name;
      if (!row.children.length) {
        for (let c = 0; c < 15; c++) { row.append(element('td')); }
        row.children[0].append(element('i'), element('span'));
        row.children[3].append(element('span', 'state'));
        row.children[12].append(element('meter'), element('span'));
      }
      row.children[0].children[0].style.background = colour(t.key);
      row.children[0].children[1].textContent = t.name;
      row.children[3].children[0].textContent = t.state;
      row.children[3].children[0].className = 'state ' + t.state;
      const meter = row.children[12].children[0];
      meter.max = 1; meter.value = t.gpu_share;
      row.children[12].children[1].textContent = (100 * t.gpu_share).toFixed(1) + ' %';
      const plain = {1: [String(t.pid)], 2: [t.priority ? String(t.priority) : 'BE', 'n'],
        4: [t.segment_rate.toFixed(1), 'n'], 5: [duration(t.wait_ns.p99), 'n'], 6: [duration(r.p50), 'n'],
        7: limited(r.p99, limit(t)), 8: limited(r.max, limit(t)),
        9: [limit(t) ? duration(limit(t)) : '–', 'n'], 10: alarm(t.job_misses),
        11: alarm(t.overruns), 13: count(t.preemptions),
        14: [t.preemptions ? (t.last_preempt_by || '?') + ', ' + age(view.now_ns - t.last_preempt_ns) + ' ago' : '']};
      for (const [c, [text, className]] of Object.entries(plain)) {
        row.children[c].textContent = text;
        row.children[c].className = className || '';
      }
    });
  }

  function histograms() {
    const list = view.tasks.filter(t => response(t).count > 0).slice(0, 24), box = id('histograms');
    while (box.children.length > list.length) { box.lastChild.remove(); }
    list.forEach((t, i) => {
      let card = box.children[i];
      if (!card) {
        card = element('div', 'histogram');
        card.append(element('p'), element('canvas'), element('p'));
        card.children[0].append(element('b'), element('span'));
        box.append(card);
      }
      const r = response(t);
      card.dataset.task = t.name;
      card.children[0].children[0].textContent = t.name;
      card.children[0].children[1].textContent = 'jobs, n = ' + r.count;
      card.children[2].textContent = 'p50 ' + duration(r.p50) + ' · p99 ' + duration(r.p99) + ' · max '
        + duration(r.max);
      bars(card.children[1], r, t);
    });
  }

  function bars(c, r, t) {
    const [g, width] = fit(c, 96), bottom = 80, deadline = limit(t);
    const columnOf = ns => COLUMNS_PER_OCTAVE * Math.log2(Math.max(ns, LOWEST_NS) / LOWEST_NS);
    const counts = new Map();
    for (let i = 0; i < r.columns.length; i += 2) { counts.set(r.columns[i], r.columns[i + 1]); }
    let low = Math.min(...counts.keys()), high = Math.max(...counts.keys()) + 1;
    if (deadline) { low = Math.min(low, columnOf(deadline)); high = Math.max(high, columnOf(deadline)); }
    low = Math.floor(low) - 2; high = Math.ceil(high) + 2;
    if (high - low < 18) { low -= 6; high += 6; }
    const x = column => (column - low) / (high - low) * width, top = Math.log1p(Math.max(...counts.values()));
    for (const [column, n] of counts) {
      const h = Math.max(2, Math.log1p(n) / top * (bottom - 6));
      g.fillStyle = deadline && LOWEST_NS * Math.pow(2, column / COLUMNS_PER_OCTAVE) > deadline
        ? css('--bad') : colour(t.key);
      g.fillRect(x(column) + 0.5, bottom - h, Math.max(1, x(column + 1) - x(column) - 1), h);
    }
    g.strokeStyle = css('--line'); g.beginPath(); g.moveTo(0, bottom + 0.5); g.lineTo(width, bottom + 0.5); g.stroke();
    g.fillStyle = css('--dim'); g.font = '10px system-ui, sans-serif'; g.textAlign = 'center';
    for (let ns = 1e3, last = -60; ns < 1e13; ns *= 10) {
      for (const f of [1, 2, 5]) {
        const at = x(columnOf(ns * f));
        const half = g.measureText(short(ns * f)).width / 2 + 1;
        if (at > half && at < width - half && at - last > 44) { g.fillText(short(ns * f), at, 92); last = at; }
      }
    }
    if (deadline) {
      g.strokeStyle = css('--bad'); g.lineWidth = 1.5; g.setLineDash([4, 3]);
      const at = x(columnOf(deadline));
      g.beginPath(); g.moveTo(at, 2); g.lineTo(at, bottom); g.stroke(); g.setLineDash([]);
    }
  }

  const short = ns => ns < 1e6 ? ns / 1e3 + 'µs' : ns < 1e9 ? ns / 1e6 + 'ms' : ns / 1e9 + 's';

  function missLog() {
    id('missCount').textContent = view.misses_total + ' since start';
    const rows = rowsOf('misses', Math.max(1, misses.length));
    if (!misses.length) {
      rows[0].replaceChildren(element('td', 'empty', 'none: every deadline and budget held'));
      rows[0].firstChild.colSpan = 6;
      return;
    }
    if (rows[0].firstChild && rows[0].firstChild.colSpan > 1) { rows[0].replaceChildren(); }
    misses.forEach((m, i) => cells(rows[i], [[wall(m.time_ns)], [m.task],
      [{segment: 'segment past its deadline', job: 'job past its deadline', budget: 'budget used up'}[m.kind]],
      [m.doing], [duration(m.limit_ns), 'n'], [m.late_ns < 0 ? m.kind === 'budget' ? '' : 'still running'
        : duration(m.late_ns), 'n bad']]));
  }

  function counters() {
    const list = Object.entries(view.counters), rows = rowsOf('counters', list.length);
    list.forEach(([name, value], i) => cells(rows[i], [[name.replace(/_/g, ' ')],
      [name.endsWith('_ns') ? duration(value) : String(value), 'n' + (value ? '' : ' zero')]]));
  }

  // ---- controls ---------------------------------------------------------------------------------------------------
  id('pause').addEventListener('click', () => pause(!paused));
  id('in').addEventListener('click', () => zoom(-1, 0.5));
  id('out').addEventListener('click', () => zoom(1, 0.5));
  document.addEventListener('keydown', e => {
    if (e.target.tagName === 'BUTTON' && e.key === ' ') { return; }
    if (e.key === ' ') { e.preventDefault(); pause(!paused); }
    if (e.key === '+') { zoom(-1, 0.5); }
    if (e.key === '-') { zoom(1, 0.5); }
  });
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  const theme = on => document.documentElement.classList.toggle('dark', on);
  theme(dark.matches);
  dark.addEventListener('change', e => theme(e.matches));
  id('theme').addEventListener('click', () => document.documentElement.classList.toggle('dark'));
  poll();
  requestAnimationFrame(frame);
})();
