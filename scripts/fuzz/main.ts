/**
 * Sends hostile messages and bytes to each part of Skein: `npm run fuzz -- --minutes 60`. The targets take turns:
 *
 * - `codec`: params and results of every method in every revision.
 * - `server`: a server in memory, with requests, notifications and responses of a client.
 * - `client`: a client in memory, with results, errors, requests and notifications of a server.
 * - `cli`: `skein-call` with the same server.
 * - `frames`: event streams and lines, in chunks of any size.
 * - `wire`: a client over `node:http` and `fetch`, with responses written to a socket.
 * - `http`: an HTTP server, with requests written to a socket.
 *
 * It fails when a run throws, dies, hangs, logs an error, shows text of the other side that could control a terminal,
 * or leaves its target without an answer to the next request. A run with one seed can be repeated:
 * `--seed 7 --only server --at 1234`. The messages of `wire` and `http` are the same then, but not the time between
 * them.
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
