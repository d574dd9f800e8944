/** The programs of `clone.md`, run as a newcomer runs them. */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { join, relative } from "node:path"
import { promisify } from "node:util"
import { docs, read, regionsOf } from "./blocks.ts"

const root = join(docs, "..")
const program = (name: string): string => regionsOf(read(`programs/${name}.ts`)).get(name) ?? ""
const run = (file: string) => promisify(execFile)(process.execPath, ["--conditions=@skein/source", file], { cwd: root })

let folder = ""
beforeAll(async () => {
  folder = await mkdtemp(join(root, "scratchpad", "clone-"))
  await writeFile(join(folder, "dice.ts"), program("dice"))
})
afterAll(() => rm(folder, { recursive: true }))

/** Runs `programs/player.ts` against `programs/dice.ts`, after a change of its text. */
const play = async (edit: (player: string) => string): Promise<string> => {
  const file = join(folder, "player.ts")
  const player = program("player").replace("scratchpad/dice.ts", relative(root, join(folder, "dice.ts")))
  await writeFile(file, edit(player))
  return (await run(file)).stdout
}

describe("programs/dice.ts and programs/player.ts", () => {
  it("print the tool and the number that it rolled", async () => {
    expect(await play((player) => player)).toMatch(/name: 'roll'[^]*structuredContent: { rolled: [1-6] }/)
  })

  it("roll every side of the smallest die, and no other", async () => {
    const stdout = await play((player) =>
      player.replace(
        /await (client\.callTool\("roll", { sides: )6( }\))/,
        (_, head, tail) => `JSON.stringify(await Promise.all(Array.from({ length: 100 }, () => ${head}2${tail})))`
      )
    )
    const rolled = stdout.matchAll(/"structuredContent":{"rolled":(\d+)}/g)
    expect(new Set(Array.from(rolled, ([, side]) => side))).toEqual(new Set(["1", "2"]))
  })

  it("report which argument is invalid for a die with one side", async () => {
    const stdout = await play((player) => player.replace("sides: 6", "sides: 1"))
    expect(stdout).toMatch(/isError: true/)
    expect(stdout).toMatch(/sides/)
  })
})

describe("clone.md", () => {
  it("shows a host configuration that is JSON", () => {
    const block = read("clone.md").match(/```json\n([^]*?)```/)?.[1] ?? ""
    expect(Object.keys(JSON.parse(block).mcpServers.dice)).toEqual(["command", "args"])
  })
})
