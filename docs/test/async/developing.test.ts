/** The command lines of `developing.md`, in a project with the programs of the guide: they are valid, and print the outputs. */
import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { blocksOf, docs, read, regionsOf } from "./blocks.ts"

const blocks = blocksOf("developing.md")

/** The command lines of the guide, each with the output that follows it. */
const lines = blocks.flatMap(({ info, text }, at) => {
  if (info !== "sh" || !text.startsWith("skein ")) return []
  const next = blocks[at + 1]
  return [{ line: text, output: next?.info === "text" ? next.text : undefined }]
})

/** A project, and the program in its path. Returns a function that runs a command line with an empty stdin. */
const project = () => {
  const root = mkdtempSync(join(tmpdir(), "skein-docs-"))
  const [bin, folder] = [join(root, "bin"), join(root, "tea")]
  for (const path of [bin, folder, join(folder, "src"), join(folder, "src/tools")]) mkdirSync(path)
  symlinkSync(join(docs, "../node_modules"), join(folder, "node_modules"))
  const described = { name: "tea-house", version: "1.0.0", author: "Ada", mcpName: "io.github.ada/tea-house" }
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ ...described, type: "module", description: "Brews tea." })
  )
  writeFileSync(join(folder, "src/server.ts"), regionsOf(read("programs/developed.ts")).get("server")!)
  writeFileSync(join(folder, "src/tools/brew.ts"), regionsOf(read("programs/folderBrew.ts")).get("tool")!)
  writeFileSync(join(folder, "src/tools/menu.ts"), regionsOf(read("programs/folderMenu.ts")).get("menu")!)
  const program = join(docs, "../packages/cli/src/bin/skein.ts")
  const command = `exec "${process.execPath}" --conditions=@skein/source "${program}" "$@"`
  writeFileSync(join(bin, "skein"), `#!/bin/sh\n${command}\n`)
  chmodSync(join(bin, "skein"), 0o755)
  const run = async (line: string): Promise<{ readonly code: unknown; readonly output: string }> => {
    const child = spawn("sh", ["-c", `exec 2>&1; exec ${line}`], {
      cwd: folder,
      env: {
        NODE_OPTIONS: "--conditions=@skein/source",
        HOME: folder,
        PATH: [bin, dirname(process.execPath), process.env["PATH"]].join(delimiter)
      },
      stdio: ["pipe", "pipe", "inherit"]
    })
    child.stdin.on("error", () => {}).end()
    let output = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text
      // A server over HTTP has no end of its own, and neither has a program that is restarted.
      if (/Listening on/.test(output) || line.includes("--restart-only")) child.kill("SIGINT")
    })
    const [code] = await once(child, "close")
    return { code, output: output.trimEnd().replaceAll(folder, "~/tea") }
  }
  return { run, remove: () => rmSync(root, { recursive: true, force: true }) }
}

const withoutPorts = (text: string): string => text.replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:3000")

describe("the command lines of developing.md", () => {
  it("are valid, and print the outputs of the guide", async () => {
    assert.isAbove(lines.length, 2)
    const { remove, run } = project()
    try {
      for (const { line, output } of lines) {
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
    const { remove, run } = project()
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
