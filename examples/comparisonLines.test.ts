/** The counted lines of the servers in `examples/comparison`, which `docs/comparison.md` states. */
import { assert, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { linesOf, servers } from "./comparison/lines.ts"

it("has the counted lines in the guide, with fewer for Skein than for SDK v2", async () => {
  const guide = readFileSync(join(import.meta.dirname, "../docs/comparison.md"), "utf8")
  for (const server of servers) {
    const row = guide.split("\n").find((line) => line.includes(`comparison/${server})`)) ?? ""
    const numbers = row.split("|").slice(2, 5).map(Number)
    const counted = await Promise.all((["skein", "fastmcp", "sdk"] as const).map((form) => linesOf(server, form)))
    assert.deepStrictEqual(numbers, counted)
    assert.isBelow(counted[0]!, counted[2]!)
  }
})
