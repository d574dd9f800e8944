/**
 * The time from the spawn of a program to its first result: it connects, calls a tool and prints the result.
 */
import { createInterface } from "node:readline"
import { kill, launch } from "../lib/childProcesses.ts"
import { ratios, spread } from "../lib/statistics.ts"
import type { Form } from "../stdio/peers.ts"
import { type Era, revisionOf } from "../stdio/messages.ts"
import { failure, type Measure, type Row } from "../http/report.ts"
import { type Peer, startOf } from "./peers.ts"
import type { Server } from "./processes.ts"
import { greeting } from "./serverData.ts"

export interface Plan {
  /** The number of starts of each program. */
  readonly starts: number
}

/** How long a program may run, in milliseconds. */
const programTimeout = 20_000

interface Start {
  readonly millis: number
  /** The detection result for the next start. */
  readonly kept: string | undefined
}

/** Starts a program, and resolves when it has ended after the expected result. */
export const startOnce = (command: ReadonlyArray<string>): Promise<Start> =>
  new Promise((resolve, reject) => {
    const begin = performance.now()
    const child = launch("load", command, { stdio: ["ignore", "pipe", "inherit"] })
    let millis: number | undefined
    let kept: string | undefined
    createInterface({ input: child.stdout! }).on("line", (line) => {
      if (millis !== undefined) kept = line
      else if (line === greeting(1)) millis = performance.now() - begin
    })
    const timer = setTimeout(() => void kill(child), programTimeout)
    child.once("error", reject)
    child.once("close", (code) => {
      clearTimeout(timer)
      if (millis !== undefined && code === 0) resolve({ millis, kept })
      else reject(new Error(`the program exited with ${code} ${millis === undefined ? "without" : "after"} a result`))
    })
  })

/** A client in one form, with or without a detection result. */
interface Variant {
  readonly peer: Peer
  readonly column: string
  readonly command: ReadonlyArray<string>
  readonly times: Array<number>
}

const forms: ReadonlyArray<Form> = ["node_modules", "bundled"]
const titles: Readonly<Record<string, string>> = {
  node_modules: "node_modules",
  bundled: "one file",
  node_modulesKept: "node_modules, kept",
  bundledKept: "one file, kept"
}

/** Measures the start times in one era. */
export const measure = async (
  server: Server,
  peers: ReadonlyArray<Peer>,
  era: Era,
  plan: Plan
): Promise<Measure> => {
  const url = server.url(era)
  const variants: Array<Variant> = []
  const failures = new Map<Peer, Row>()
  const participants = peers.filter((peer) => peer.eras.includes(era))
  for (const peer of participants) {
    try {
      for (const form of forms) {
        // The first start fills the file cache, and returns the detection result.
        const { kept } = await startOnce(startOf(peer, form, [url, era]))
        variants.push({ peer, column: form, command: startOf(peer, form, [url, era]), times: [] })
        if (kept === undefined) continue
        variants.push({ peer, column: `${form}Kept`, command: startOf(peer, form, [url, era, kept]), times: [] })
      }
    } catch (error) {
      failures.set(peer, failure(peer, error))
    }
  }
  for (let round = 0; round < plan.starts; round++) {
    for (const { command, peer, times } of variants) {
      if (failures.has(peer)) continue
      try {
        times.push((await startOnce(command)).millis)
      } catch (error) {
        failures.set(peer, failure(peer, error))
      }
    }
  }
  const base = variants.find(({ column, peer }) => peer.name === "bare" && column === "node_modules")!.times
  const rowOf = (peer: Peer): Row => {
    const own = variants.filter((variant) => variant.peer === peer)
    const times = Object.fromEntries(own.map((variant) => [variant.column, variant.times]))
    return {
      peer: peer.name,
      label: peer.label,
      figures: {
        ...Object.fromEntries(own.map((variant) => [variant.column, spread(variant.times)])),
        ratio: ratios(times["node_modules"]!, base)
      },
      samples: times
    }
  }
  return {
    name: "start",
    era,
    title: `From spawn to the first result, ${revisionOf[era]}`,
    columns: [
      { key: "ratio", title: "node_modules / bare", unit: "ratio" },
      ...Object.entries(titles).map(([key, title]) => ({ key, title: `${title} ms`, unit: "decimal" as const }))
    ],
    rows: participants.map((peer) => failures.get(peer) ?? rowOf(peer))
  }
}
