/**
 * From the spawn of a program to its first result: it connects, calls a tool and prints what came.
 */
import { createInterface } from "node:readline"
import { kill, launch } from "../lib/children.ts"
import { ratios, spread } from "../lib/statistics.ts"
import type { Form } from "../stdio/peers.ts"
import { type Era, revisionOf } from "../stdio/wire.ts"
import { failure, type Measure, type Row } from "../http/report.ts"
import { type Peer, startOf } from "./peers.ts"
import type { Server } from "./processes.ts"
import { greeting } from "./wire.ts"

export interface Plan {
  /** How often each program is started. */
  readonly starts: number
}

/** How long a program may take, in milliseconds. */
const patience = 20_000

interface Start {
  readonly millis: number
  /** What it keeps for the next time. */
  readonly kept: string | undefined
}

const startOnce = (command: ReadonlyArray<string>): Promise<Start> =>
  new Promise((resolve, reject) => {
    const begin = performance.now()
    const child = launch("load", command, { stdio: ["ignore", "pipe", "inherit"] })
    let millis: number | undefined
    let kept: string | undefined
    createInterface({ input: child.stdout! }).on("line", (line) => {
      if (millis !== undefined) kept = line
      else if (line === greeting(1)) millis = performance.now() - begin
    })
    const timer = setTimeout(() => void kill(child), patience)
    child.once("error", reject)
    child.once("close", (code) => {
      clearTimeout(timer)
      if (millis !== undefined && code === 0) resolve({ millis, kept })
      else reject(new Error(`its program ended with ${code}, ${millis === undefined ? "without" : "after"} a result`))
    })
  })

/** One way to start one client. */
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

/** Times the starts in one era. */
export const measure = async (
  server: Server,
  peers: ReadonlyArray<Peer>,
  era: Era,
  plan: Plan
): Promise<Measure> => {
  const url = server.url(era)
  const variants: Array<Variant> = []
  const failures = new Map<Peer, Row>()
  const speakers = peers.filter((peer) => peer.eras.includes(era))
  for (const peer of speakers) {
    try {
      for (const form of forms) {
        // The first start fills the file cache, and tells what can be kept.
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
    const mine = variants.filter((variant) => variant.peer === peer)
    const times = Object.fromEntries(mine.map((variant) => [variant.column, variant.times]))
    return {
      peer: peer.name,
      label: peer.label,
      figures: {
        ...Object.fromEntries(mine.map((variant) => [variant.column, spread(variant.times)])),
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
    rows: speakers.map((peer) => failures.get(peer) ?? rowOf(peer))
  }
}
