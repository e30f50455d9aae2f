// Writes harbour-calls.csv: 500 invented calls of ships in six harbours. The same each time: node make-harbour-calls.mjs
import { writeFileSync } from "node:fs";

let seed = 20260401;
/** A number from 0 to 1, by mulberry32. */
function random() {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const between = (from, to) => from + random() * (to - from);
const pick = (weighted) => {
  let rest = random() * weighted.reduce((sum, [, weight]) => sum + weight, 0);
  return weighted.find(([, weight]) => (rest -= weight) < 0)?.[0] ?? weighted[0][0];
};

const HARBOURS = [
  ["Nordhaven", 9],
  ["Sankt Brede", 7],
  ["Port Callow", 6],
  ["Eastmole", 4],
  ["Lindesund", 3],
  ["Grey Quay", 2],
];
const TYPES = [
  ["coaster", 8],
  ["trawler", 6],
  ["ferry", 5],
  ["tanker", 3],
  ["container ship", 3],
  ["yacht", 4],
];
const SHAPE = {
  coaster: { length: [62, 95], crew: [6, 10], cargo: [800, 3200], fee: 9 },
  trawler: { length: [18, 42], crew: [4, 9], cargo: [4, 85], fee: 5 },
  ferry: { length: [70, 165], crew: [18, 60], cargo: [40, 900], fee: 11 },
  tanker: { length: [95, 180], crew: [14, 24], cargo: [3500, 16000], fee: 14 },
  "container ship": { length: [120, 210], crew: [16, 24], cargo: [4000, 21000], fee: 13 },
  yacht: { length: [9, 26], crew: [2, 5], cargo: null, fee: 2.5 },
};
const WIND = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];

const rows = [
  [
    "call_id",
    "date",
    "harbour",
    "ship_type",
    "length_m",
    "crew",
    "cargo_t",
    "wind_from",
    "wind_bft",
    "delay_min",
    "fee_eur",
    "pilot",
  ],
];
const start = Date.UTC(2025, 0, 2);
for (let i = 0; i < 500; i++) {
  const day = Math.floor((i / 500) * 364);
  const type = pick(TYPES);
  const shape = SHAPE[type];
  const winter = Math.cos((2 * Math.PI * day) / 365);
  const wind = Math.max(0, Math.min(11, Math.round(4 + 1.6 * winter + between(-3, 3))));
  const length = between(...shape.length);
  const late = random() < 0.3 + wind * 0.04 ? between(5, 25 + wind * wind * 2.2) : 0;
  rows.push([
    `HC-${String(1000 + i)}`,
    new Date(start + day * 86_400_000).toISOString().slice(0, 10),
    pick(HARBOURS),
    type,
    length.toFixed(1),
    Math.round(between(...shape.crew)),
    shape.cargo && random() > 0.04 ? Math.round(between(...shape.cargo)) : "",
    WIND[Math.floor(random() * WIND.length)],
    wind,
    Math.round(late),
    (40 + length * shape.fee * between(0.92, 1.08)).toFixed(2),
    length > 60 && type !== "ferry" ? "yes" : "no",
  ]);
}
writeFileSync(new URL("./harbour-calls.csv", import.meta.url), `${rows.map((row) => row.join(",")).join("\n")}\n`);
