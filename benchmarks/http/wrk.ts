/**
 * The load: `wrk`, which is C and costs far less per request than any server here, with the requests that `load.lua` takes turns in.
 */
import { spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { join } from "node:path"
import { launch } from "../lib/children.ts"

const script = fileURLToPath(new URL("./load.lua", import.meta.url))
const folder = fileURLToPath(new URL("../dist/http/load/", import.meta.url))

/** Fails, and says how to get it, where there is no `wrk`. */
export const requireWrk = (): void => {
  if (spawnSync("wrk", ["--version"]).error !== undefined) {
    throw new Error("This benchmark needs wrk: apt install wrk, brew install wrk, or https://github.com/wg/wrk")
  }
}

export interface Load {
  readonly requests: number
  readonly bytes: number
  /** How long it took, in seconds. */
  readonly seconds: number
  /** Latencies in milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export interface Options {
  readonly port: number
  /** Whole requests, to be sent in turn. */
  readonly requests: ReadonlyArray<string>
  readonly connections: number
  readonly seconds: number
  /** The pause before each request, in milliseconds. None by default. */
  readonly pause?: number
  /** What must be in each answer. Without, answers are not read. */
  readonly marks?: ReadonlyArray<string>
}

/** A load under way. */
export interface Running {
  /** Fails when an answer was wrong or did not come. */
  readonly load: Promise<Load>
  /** Ends it before its time; what was measured counts. */
  readonly stop: () => void
}

export const start = ({ connections, marks = [], pause = 0, port, requests, seconds }: Options): Running => {
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${port}.http`)
  writeFileSync(file, requests.join("\0"))
  const args = [
    "-t1",
    `-c${connections}`,
    `-d${seconds}s`,
    "--timeout",
    "30s",
    "-s",
    script,
    `http://127.0.0.1:${port}/mcp`
  ]
  const child = launch("load", ["wrk", ...args, "--", file, String(pause), ...marks], {
    stdio: ["ignore", "pipe", "pipe"]
  })
  return {
    load: Promise.all([text(child.stdout!), text(child.stderr!)]).then(([output, errors]) => read(output, errors)),
    stop: () => void child.kill("SIGINT")
  }
}

export const run = (options: Options): Promise<Load> => start(options).load

const read = (output: string, errors: string): Load => {
  const line = output.split("\n").find((line) => line.startsWith("@"))
  if (line === undefined) throw new Error(`wrk did not finish: ${errors.trim()}`)
  const fields = line.slice(1).split("\t")
  const [requests, micros, bytes, refused, lost, wrong, p50, p99, max] = fields.slice(0, 9).map(Number)
  if (refused! + lost! + wrong! > 0) {
    throw new Error(
      `${refused} answers with another status, ${lost} lost, ${wrong} not as expected ${fields[9]}`.trim()
    )
  }
  if (requests === 0) throw new Error("no answer at all")
  return {
    requests: requests!,
    bytes: bytes!,
    seconds: micros! / 1e6,
    p50: p50! / 1_000,
    p99: p99! / 1_000,
    max: max! / 1_000
  }
}
