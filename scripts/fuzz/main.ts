/**
 * Sends hostile messages to a server and to the codecs: `npm run fuzz -- --minutes 60`. A run with one seed can be repeated:
 * `--seed 7 --only server --at 1234` repeats one run of one target.
 *
 * It fails when a run throws, dies, logs an error, or leaves its target without an answer to the next request.
 */
import { parseArgs } from "node:util"
import { fuzz } from "./fuzz.ts"

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "1" },
    seed: { type: "string" },
    only: { type: "string" },
    at: { type: "string" }
  }
})
const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed)
const print = (line: string): void => console.log(line)

print(`seed ${seed}`)
const faults = await fuzz({
  seed,
  only: values.only,
  at: values.at === undefined ? undefined : Number(values.at),
  milliseconds: Number(values.minutes) * 60_000,
  print
})
process.exit(faults === 0 ? 0 : 1)
