/** The programs of `clone.md`, with the command of a project in the place of that of the clone. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { read, regionsOf } from "../blocks.ts"
import { type Project, project } from "../runtime.ts"

const program = (name: string): string => regionsOf(read(`programs/${name}.ts`)).get(name) ?? ""

let made: Project
beforeAll(() => {
  const player = program("player").replace("npm run -s try -- scratchpad/dice.ts", "node dice.ts")
  const often =
    "JSON.stringify(await Promise.all(Array.from({ length: 100 }, () => client.callTool(\"roll\", { sides: 2 }))))"
  made = project("clone", [
    ["package.json", JSON.stringify({ type: "module" })],
    ["dice.ts", program("dice")],
    ["player.ts", player],
    ["often.ts", player.replace("await client.callTool(\"roll\", { sides: 6 })", often)],
    ["flat.ts", player.replace("sides: 6", "sides: 1")]
  ])
})
afterAll(() => made.remove())

const play = async (file: string): Promise<string> => {
  const { code, output } = await made.run(`node ${file}.ts`)
  expect({ code, output }).toMatchObject({ code: 0 })
  return output
}

describe("programs/dice.ts and programs/player.ts", () => {
  it("print the tool and the number that it rolled", async () => {
    expect(await play("player")).toMatch(/name: ['"]?roll['"]?[^]*structuredContent: {\s*rolled: [1-6],?\s*}/)
  })

  it("roll every side of the smallest die, and no other", async () => {
    const rolled = (await play("often")).matchAll(/"structuredContent":{"rolled":(\d+)}/g)
    expect(new Set(Array.from(rolled, ([, side]) => side))).toEqual(new Set(["1", "2"]))
  })

  it("report which argument is invalid for a die with one side", async () => {
    expect(await play("flat")).toMatch(/sides[^]*isError: true|isError: true[^]*sides/)
  })
})

describe("clone.md", () => {
  it("shows a host configuration that is JSON", () => {
    const block = read("clone.md").match(/```json\n([^]*?)```/)?.[1] ?? ""
    expect(Object.keys(JSON.parse(block).mcpServers.dice)).toEqual(["command", "args"])
  })
})
