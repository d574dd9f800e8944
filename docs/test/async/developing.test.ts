/** The command lines of `developing.md`, in a project with the programs of the guide: they are valid, and print the outputs. */
import { assert, describe, it } from "vitest"
import { blocksOf, read, textOf } from "../blocks.ts"
import { fromSource, project } from "../runtime.ts"

const blocks = blocksOf("developing.md")

/** The command lines of the guide, each with the output that follows it. */
const lines = blocks.flatMap(({ info, text }, at) => {
  if (info !== "sh" || !text.startsWith("skein ")) return []
  const next = blocks[at + 1]
  return [{ line: text, output: next?.info === "text" ? next.text : undefined }]
})

const described = { name: "tea-house", version: "1.0.0", author: "Ada", mcpName: "io.github.ada/tea-house" }

/** The project of the guide. */
const tea = () =>
  project("tea", [
    ["package.json", JSON.stringify({ ...described, type: "module", description: "Brews tea." })],
    ["src/server.ts", textOf("developing.md", "ts programs/developed.ts")],
    ["src/tools/brew.ts", textOf("developing.md", "ts programs/folderBrew.ts")],
    ["src/tools/menu.ts", textOf("developing.md", "ts programs/folderMenu.ts")]
  ])

const withoutPorts = (text: string): string => text.replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:3000")

describe("the command lines of developing.md", () => {
  it("are valid, and print the outputs of the guide", async () => {
    assert.isAbove(lines.length, 2)
    const { remove, run } = tea()
    try {
      const isOfSuite = ({ line }: (typeof lines)[number]) => line.startsWith("skein conformance")
      // The conformance suite is a package of its own.
      for (
        const { line, output } of [
          ...lines.filter((each) => !isOfSuite(each)),
          ...fromSource(...lines.filter(isOfSuite))
        ]
      ) {
        const ran = await run(line)
        // The end of the report about an invalid command line.
        assert.notMatch(ran.output, /--help lists the (options|commands)\./, line)
        if (output === undefined) assert.include([0, 130], ran.code, `${line}: ${ran.output}`)
        else assert.strictEqual(withoutPorts(ran.output), withoutPorts(output), line)
      }
    } finally {
      remove()
    }
  }, 180_000)

  it("have the limits of the guide", async () => {
    const page = read("developing.md")
    const rows = Array.from(page.matchAll(/`skein (\w+) --([\w-]+)` \(([\d.]+)\)/g))
    assert.isAbove(rows.length, 5)
    const { remove, run } = tea()
    try {
      const helps = new Map<string, string>()
      for (const [, command = "", option = "", byDefault = ""] of rows) {
        if (!helps.has(command)) helps.set(command, (await run(`skein ${command} --help`)).output)
        const help = helps.get(command)!.replaceAll(/\s+/g, " ")
        assert.match(help, new RegExp(`--${option} <\\w+> [^:]*: ${byDefault} by default`), option)
      }
    } finally {
      remove()
    }
  }, 60_000)
})
