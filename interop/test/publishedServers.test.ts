/**
 * Reads published servers from npm with Skein's client and with the clients of both official SDKs, over each of their
 * transports, and compares what they read member by member.
 *
 * With `SKEIN_PUBLISHED=all` all servers are read, and their table is compared. Otherwise those of the authors of the
 * specification, and those with several transports.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it, vi } from "vitest"
import { compare, type Difference, type Found } from "../published/differences.ts"
import { emptyHome, missing, pinned, program } from "../published/installation.ts"
import * as Readings from "../published/readings.ts"
import { freePort } from "../../scripts/freePort.ts"
import { startRemote } from "../published/remote.ts"
import { general, type Listening, newest, type PublishedServer, servers } from "../published/servers.ts"
import { alignedTable } from "../published/table.ts"

/** The process of a server: with the given arguments and variables after those of every transport. */
const command = (
  { args = [], env, name }: PublishedServer,
  more: {
    readonly file?: string
    readonly args?: ReadonlyArray<string>
    readonly env?: Readonly<Record<string, string>>
  }
): Readings.Command => {
  const home = emptyHome()
  writeFileSync(join(home, "notes.txt"), "A note.\n")
  return {
    command: process.execPath,
    args: [program(name, more.file), ...args, ...more.args ?? []],
    cwd: home,
    env: { PATH: process.env["PATH"] ?? "", HOME: home, ...env, ...more.env }
  }
}

/** The readings of the three clients. */
interface All {
  readonly v1: Readings.Reading
  /** Undefined if the client failed. */
  readonly v2: Readings.Reading | undefined
  readonly skein: Readings.Reading
}

const readAll = async (server: PublishedServer, target: Readings.Target, isReadByV2 = true): Promise<All> => {
  const requests = { calls: server.calls ?? [], reads: server.reads ?? [], prompts: server.prompts ?? [] }
  const v1 = await Readings.readWithSdkV1(target, requests)
  const v2 = Readings.readWithSdkV2(target, requests)
  return {
    v1,
    v2: await (isReadByV2 ? v2 : v2.catch(() => undefined)),
    skein: await Readings.readWithSkein(target, requests)
  }
}

/** Reads a server that listens on a port. */
const readListening = async (server: PublishedServer, listening: Listening): Promise<All> => {
  const { args, env, file, headers = {}, transport } = listening
  const port = await freePort()
  const options = {
    args: args?.(`${port}`) ?? [],
    env: env?.(`${port}`) ?? {},
    ...(file === undefined ? {} : { file })
  }
  const { stop } = await startRemote(command(server, options), port)
  try {
    const path = listening.path ?? (transport === "sse" ? "/sse" : "/mcp")
    const target = { transport, url: `http://127.0.0.1:${port}${path}`, headers }
    return await readAll(server, target, listening.unreadBySdkV2 === undefined)
  } finally {
    await stop()
  }
}

/** The differences that no rule accepts. */
const unexplained = (found: ReadonlyArray<Found>, from: Difference["from"], rules: ReadonlyArray<Difference>) =>
  found.filter(({ at }) => !rules.some((rule) => (rule.from ?? from) === from && rule.at.test(at)))
    .map(({ text }) => text)

const count = (reading: Readings.Reading, name: string): number => {
  const list = reading[name]
  return Array.isArray(list) ? list.length : 0
}

/** A summary of the compared answers, for the table. */
const summary = (reading: Readings.Reading): string =>
  ["tools", "resources", "resourceTemplates", "prompts"]
    .filter((name) => count(reading, name) > 0)
    .map((name) => `${count(reading, name)} ${name === "resourceTemplates" ? "templates" : name}`)
    .concat(
      ["call", "read", "prompt"].flatMap((kind) => {
        const requests = Object.keys(reading).filter((name) => name.startsWith(`${kind} `)).length
        return requests === 0 ? [] : `${requests} × ${kind}`
      })
    )
    .join(", ")

// The programs start slowly, and the machine may have two cores.
vi.setConfig({ maxConcurrency: 2 })

const rows = new Map<string, ReadonlyArray<string>>()

/** The tests of a server: a transport, and the function that reads it. */
const readingsOf = (server: PublishedServer, { stdio = [] } = server) => [
  ...(stdio === false
    ? []
    : [{
      transport: "stdio",
      unreadBySdkV2: undefined,
      read: () => readAll(server, command(server, { args: stdio }))
    }]),
  ...(server.listening ?? []).map((listening) => ({
    transport: listening.transport,
    unreadBySdkV2: listening.unreadBySdkV2,
    read: () => readListening(server, listening)
  }))
]

const isWhole = process.env["SKEIN_PUBLISHED"] === "all"

const selected = servers.filter(({ listening = [], name }) =>
  isWhole || name.startsWith("@modelcontextprotocol/") || listening.length > 1
)

describe.skipIf(missing !== undefined).concurrent(missing ?? "published servers", () => {
  for (const server of selected) {
    const { differences = [], fault, name } = server
    const run = fault === undefined ? it : it.fails
    for (const { read, transport, unreadBySdkV2 } of readingsOf(server)) {
      const title = `${name} ${pinned[name]} · ${transport} · is read as both official SDKs read it`
      run(title, { timeout: 120_000 }, async ({ expect }) => {
        const { skein, v1, v2 } = await read()
        const reasons = differences.map(({ reason }) => reason)
        rows.set(`${name} ${transport}`, [
          `\`${name}\``,
          pinned[name]!,
          transport,
          String(skein["revision"]),
          summary(skein),
          [...reasons, unreadBySdkV2, fault].filter((reason) => reason !== undefined).join("; ")
        ])
        expect(v2 === undefined).toBe(unreadBySdkV2 !== undefined)
        const found = { "sdk-v1": compare(skein, v1), "sdk-v2": v2 === undefined ? [] : compare(skein, v2) }
        const rules = [...general, ...(skein["revision"] === "2026-07-28" ? newest : []), ...differences]
        for (const from of ["sdk-v1", "sdk-v2"] as const) {
          expect(unexplained(found[from], from, rules)).toEqual([])
        }
        // A reason without a difference is out of date.
        const all = [...found["sdk-v1"], ...found["sdk-v2"]]
        expect(differences.filter(({ at }) => !all.some((place) => at.test(place.at)))).toEqual([])
      })
    }
  }
})

it.runIf(isWhole && missing === undefined && !process.argv.includes("-t"))(
  "lists the published servers in a table",
  async () => {
    const header = ["Server", "Version", "Transport", "Revision", "Compared", "Differences"]
    const lines = servers.flatMap((server) =>
      readingsOf(server).map(({ transport }) =>
        rows.get(`${server.name} ${transport}`) ?? [server.name, "not read", transport, "", "", ""]
      )
    )
    const table = alignedTable(header, lines)
    const reasons = [...general, ...newest].map(({ reason }) => `- ${reason}\n`).join("")
    await expect(`${table}\nAccepted differences of every server:\n\n${reasons}`).toMatchFileSnapshot(
      "../published/servers.md"
    )
  }
)
