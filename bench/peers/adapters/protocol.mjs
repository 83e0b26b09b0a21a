// What every node adapter shares; mirrors protocol.py. The words are in ../../README.md.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import readline from "node:readline";

export const DSN = process.env.BENCH_DSN;
export const BUSINESS_INSERT = "INSERT INTO bench_biz (job) VALUES ($1)";
// Packages live in $BENCH_CACHE/node, not beside this file.
const require = createRequire(`${process.env.BENCH_CACHE}/node/package.json`);
export const load = async (pkg) => { const m = await import(require.resolve(pkg)); return m.default && !m.run && !m.PgBoss ? m.default : m; };
export const versions = (...pkgs) => Object.fromEntries([["node", process.version], ...pkgs.map((p) =>
  [p, JSON.parse(readFileSync(`${process.env.BENCH_CACHE}/node/node_modules/${p}/package.json`)).version])]);

export const now = () => Number(process.hrtime.bigint()) / 1e9; // CLOCK_MONOTONIC, same as python
export const emit = (...words) => process.stdout.write(words.join(" ") + "\n");
const sleep = (s) => new Promise((ok) => setTimeout(ok, Math.max(0, s) * 1000));

export const progress = {
  count: 0,
  hit() { if (!this.count) emit("F", now()); this.count++; },
  probe(i) { emit("L", i, now()); this.count++; },
};

const commands = {
  async setup(peer) { await peer.setup(); },
  async enqueue(peer, n, chunk) {
    n = +n; chunk = +chunk;
    await peer.open();
    const t0 = now();
    if (chunk === 1) for (let i = 0; i < n; i++) await peer.enqueueOne(i);
    else for (let lo = 0; lo < n; lo += chunk)
      await peer.enqueueMany(Array.from({ length: Math.min(chunk, n - lo) }, (_, k) => lo + k));
    emit(JSON.stringify({ seconds: now() - t0 }));
  },
  async produce(peer, n, every) {
    await peer.open();
    await peer.enqueueOne(-1);
    await sleep(0.3);
    let t = now();
    const stamps = [];
    for (let i = 0; i < +n; i++) {
      t += +every;
      await sleep(t - now());
      const t0 = now();
      await peer.enqueueOne(i);
      stamps.push([i, t0, now()]);
    }
    for (const s of stamps) emit("P", ...s);
  },
  async work(peer, handler, conf) {
    emit("READY");
    await new Promise((ok) => readline.createInterface({ input: process.stdin }).once("line", ok)); // wait for GO
    let seen = 0;
    setInterval(() => { if (progress.count !== seen) emit("H", (seen = progress.count), now()); }, 20);
    await peer.work(handler, JSON.parse(conf));
    await new Promise(() => {});
  },
};

export async function main(peer) {
  const [cmd, ...args] = process.argv.slice(2);
  process.on("SIGTERM", () => process.exit(0));
  if (cmd === "meta") emit(JSON.stringify(peer.meta));
  else await commands[cmd](peer, ...args);
  await new Promise((ok) => process.stdout.write("", ok)); // drain stdout before exiting
  process.exit(0);
}
