// What can be taken away: the numbers (CSV) and the page itself, as they are shown; picture.js has the picture.

const ROWS = 500; // of a table, made into text at a time

export function give(parts, type, name) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

const quote = (label) => (/[",\n]/.test(label) ? `"${label.replaceAll('"', '""')}"` : label);

function saveCells(run, name) {
  const cells = run.search.rows.flatMap(({ step, ends, totals }) => totals.map((total, k) => [step + 1, ends[k], ends[k + 1], total].join(",")));
  give([`probe,above,up_to,total\n${cells.join("\n")}\n`], "text/csv", `${name}.csv`);
}

export function saveCsv(run, name) {
  if (run.search) {
    saveCells(run, name);
    return;
  }
  const each = (prefix) => run.labels.map((label) => quote(`${prefix}_${label}`));
  const parts = [["t", "error", "spread", ...each("x"), ...each("sends_own")].join(",") + "\n"];
  const inside = run.labels.map((_, i) => run.plateaus(i));
  for (let begin = 0; begin < run.frames; begin += ROWS) {
    let text = "";
    for (let f = begin; f < Math.min(begin + ROWS, run.frames); f += 1) {
      const t = run.time(f);
      const row = [t, run.error[f], run.spread[f]];
      for (let i = 0; i < run.n; i += 1) row.push(run.x(f, i));
      for (let i = 0; i < run.n; i += 1) row.push(Number(inside[i].some(([start, stop]) => start <= t && t < stop)));
      text += `${row.join(",")}\n`;
    }
    parts.push(text);
  }
  give(parts, "text/csv", `${name}.csv`);
}

export function savePage(page, name) {
  give([page], "text/html", `${name}.html`);
}
