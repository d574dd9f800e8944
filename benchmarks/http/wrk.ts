/**
 * Generates load with `wrk`, which needs far less processor time per request than any server here. `load.lua` creates
 * the requests.
 */
import { spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { join } from "node:path"
import { launch } from "../lib/childProcesses.ts"

const script = fileURLToPath(new URL("./load.lua", import.meta.url))
const folder = fileURLToPath(new URL("../dist/http/load/", import.meta.url))

/** Throws if `wrk` is not installed, with instructions to install it. */
export const requireWrk = (): void => {
  if (spawnSync("wrk", ["--version"]).error !== undefined) {
    throw new Error("This benchmark requires wrk: apt install wrk, brew install wrk, or https://github.com/wg/wrk")
  }
}

export interface Load {
  readonly requests: number
  readonly bytes: number
  /** The duration in seconds. */
  readonly seconds: number
  /** Latencies in milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export interface Options {
  readonly port: number
  /** Complete HTTP requests, sent in turn. */
  readonly requests: ReadonlyArray<string>
  readonly connections: number
  readonly seconds: number
  /** The pause before each request, in milliseconds. 0 by default. */
  readonly pause?: number
  /** Texts that each response must contain. Without them, responses are not checked. */
  readonly marks?: ReadonlyArray<string>
}

/** A running load. */
export interface Running {
  /** Rejects when a response was wrong or missing. */
  readonly load: Promise<Load>
  /** Ends the load early. The measurements so far count. */
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
      `${refused} responses with another status, ${lost} lost, ${wrong} with unexpected content ${fields[9]}`.trim()
    )
  }
  if (requests === 0) throw new Error("wrk received no response")
  return {
    requests: requests!,
    bytes: bytes!,
    seconds: micros! / 1e6,
    p50: p50! / 1_000,
    p99: p99! / 1_000,
    max: max! / 1_000
  }
}
