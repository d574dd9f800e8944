/**
 * Reads published servers from npm with Skein's client and with the clients of both official SDKs, over stdio, and
 * compares what they read member by member.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it, vi } from "vitest"
import { compare, type Difference, type Found } from "../published/differences.ts"
import { emptyHome, missing, pinned, program } from "../published/installation.ts"
import { type Reading, readWithSdkV1, readWithSdkV2, readWithSkein, type Target } from "../published/readings.ts"
import { general, type PublishedServer, servers } from "../published/servers.ts"
import { alignedTable } from "../published/table.ts"

const targetOf = ({ args = [], env, name }: PublishedServer): Target => {
  const home = emptyHome()
  writeFileSync(join(home, "notes.txt"), "A note.\n")
  return {
    command: process.execPath,
    args: [program(name), ...args],
    cwd: home,
    env: { PATH: process.env["PATH"] ?? "", HOME: home, ...env }
  }
}

/** The differences that no rule accepts. */
const unexplained = (found: ReadonlyArray<Found>, from: Difference["from"], rules: ReadonlyArray<Difference>) =>
  found.filter(({ at }) => !rules.some((rule) => (rule.from ?? from) === from && rule.at.test(at)))
    .map(({ text }) => text)

const count = (reading: Reading, name: string): number => {
  const list = reading[name]
  return Array.isArray(list) ? list.length : 0
}

/** What was compared, for the table. */
const summary = (reading: Reading): string =>
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

describe.skipIf(missing !== undefined).concurrent(missing ?? "published servers", () => {
  for (const server of servers) {
    const { differences = [], fault, name } = server
    const run = fault === undefined ? it : it.fails
    run(`${name} ${pinned[name]} · is read as both official SDKs read it`, { timeout: 120_000 }, async ({ expect }) => {
      const requests = { calls: server.calls ?? [], reads: server.reads ?? [], prompts: server.prompts ?? [] }
      const target = targetOf(server)
      const v1 = await readWithSdkV1(target, requests)
      const v2 = await readWithSdkV2(target, requests)
      const skein = await readWithSkein(target, requests)
      const reasons = differences.map(({ reason }) => reason)
      rows.set(name, [
        `\`${name}\``,
        pinned[name]!,
        String(skein["revision"]),
        summary(skein),
        [...reasons, ...(fault === undefined ? [] : [fault])].join("; ")
      ])
      const found = { "sdk-v1": compare(skein, v1), "sdk-v2": compare(skein, v2) }
      const rules = [...general, ...differences]
      for (const from of ["sdk-v1", "sdk-v2"] as const) {
        expect(unexplained(found[from], from, rules)).toEqual([])
      }
      // A reason without a difference is out of date.
      const all = [...found["sdk-v1"], ...found["sdk-v2"]]
      expect(differences.filter(({ at }) => !all.some((place) => at.test(place.at)))).toEqual([])
    })
  }
})

it.skipIf(missing !== undefined || process.argv.includes("-t"))("lists the published servers in a table", async () => {
  const header = ["Server", "Version", "Revision", "Compared", "Differences"]
  const table = alignedTable(header, servers.map(({ name }) => rows.get(name) ?? [name, "not read", "", "", ""]))
  const reasons = general.map(({ reason }) => `- ${reason}\n`).join("")
  await expect(`${table}\nAccepted differences of every server:\n\n${reasons}`).toMatchFileSnapshot(
    "../published/servers.md"
  )
})
