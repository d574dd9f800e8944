/**
 * Edits the files of the package `skein` after they were bundled, so that a program starts sooner:
 *
 * - Functions that programs run at their start are in parentheses. V8 compiles a function in parentheses together with its
 *   file, and the compile cache of Node has only what was compiled with a file. Each process compiles all other functions
 *   again, when it calls them. V8 itself names the functions, by the coverage of a trial program.
 * - Characters outside of ASCII are escaped: Node reads a file with one such character as text of two bytes per character.
 */
import { decode, encode } from "@jridgewell/sourcemap-codec"
import { execFile } from "node:child_process"
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { promisify } from "node:util"
import { parse, Visitor } from "rolldown/utils"

/** How long the trial may run, in milliseconds. */
const trialTimeout = 120_000

/** A text at an offset of a file, instead of some characters. */
interface Edit {
  readonly at: number
  readonly removed: number
  readonly text: string
}

/** A program with a client of a server on stdio and of the same server on HTTP. */
const trial = (dist: string): string => {
  const entry = (name: string): string => JSON.stringify(pathToFileURL(join(dist, `${name}.js`)).href)
  const server = `import { AsyncServer } from ${entry("index")}
import * as z from ${entry("zod")}
const server = new AsyncServer({ name: "hello", version: "1.0.0" })
  .tool("greet", { input: z.object({ name: z.string() }) }, async ({ name }) => "Hello, " + name + "!")
`
  return `${server}import { AsyncClient } from ${entry("client")}
const { NODE_V8_COVERAGE } = process.env
const args = ["--input-type=module", "--eval", ${JSON.stringify(`${server}server.runStdio()`)}]
const { close, url } = await server.listen({ port: 0 })
for (const to of [{ command: process.execPath, args, env: { NODE_V8_COVERAGE } }, url]) {
  const client = await AsyncClient.connect(to)
  await client.listTools()
  const { content } = await client.callTool("greet", { name: "Ada" })
  if (content[0].text !== "Hello, Ada!") throw new Error("the trial has the result " + JSON.stringify(content))
  await client.close()
}
await close()
`
}

/** A coverage file of Node. Offsets count the characters of a file. */
interface Coverage {
  readonly result: ReadonlyArray<{
    readonly url: string
    readonly functions: ReadonlyArray<{
      readonly ranges: ReadonlyArray<{ readonly startOffset: number; readonly count: number }>
    }>
  }>
}

/** Runs the trial. Returns the offsets of the functions that ran, by the path of their file. */
const runTrial = async (dist: string): Promise<ReadonlyMap<string, ReadonlySet<number>>> => {
  const folder = await mkdtemp(join(tmpdir(), "skein-trial-"))
  const found = new Map<string, Set<number>>()
  try {
    await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", trial(dist)], {
      env: { ...process.env, NODE_V8_COVERAGE: folder },
      timeout: trialTimeout
    })
    for (const file of await readdir(folder)) {
      const { result } = JSON.parse(await readFile(join(folder, file), "utf8")) as Coverage
      for (const { functions, url } of result) {
        if (!url.startsWith("file:")) continue
        const path = fileURLToPath(url)
        const starts = found.get(path) ?? new Set()
        found.set(path, starts)
        // The first range is the whole function.
        for (const { ranges: [range] } of functions) if (range!.count > 0) starts.add(range!.startOffset)
      }
    }
  } finally {
    await rm(folder, { recursive: true })
  }
  return found
}

/** Returns the parentheses around the functions with some offsets. V8 knows none around a method or a declaration. */
const parentheses = async (code: string, starts: ReadonlySet<number>): Promise<ReadonlyArray<Edit>> => {
  const edits: Array<Edit> = []
  const methods = new Set<unknown>()
  const enclose = (node: { readonly start: number; readonly end: number }): void => {
    if (!starts.has(node.start) || methods.has(node)) return
    edits.push({ at: node.start, removed: 0, text: "(" }, { at: node.end, removed: 0, text: ")" })
  }
  const visitor = new Visitor({
    MethodDefinition: ({ value }) => void methods.add(value),
    Property: ({ kind, method, value }) => void (method || kind !== "init" ? methods.add(value) : undefined),
    FunctionExpression: enclose,
    ArrowFunctionExpression: enclose
  })
  visitor.visit((await parse("code.js", code)).program)
  return edits
}

const escapes = (code: string): ReadonlyArray<Edit> =>
  Array.from(code.matchAll(/[^\0-\x7f]/g), ({ 0: unit, index }) => ({
    at: index,
    removed: 1,
    text: `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
  }))

/** Makes the edits in a file, and moves the mappings of its source map. */
const edited = (
  code: string,
  mappings: string,
  unordered: ReadonlyArray<Edit>
): { readonly code: string; readonly mappings: string } => {
  const edits = unordered.toSorted((one, other) => one.at - other.at)
  let text = ""
  let end = 0
  for (const { at, removed, text: added } of edits) {
    text += code.slice(end, at) + added
    end = at + removed
  }
  let next = 0
  let lineStart = 0
  const lines = decode(mappings)
  const moved = code.split("\n").slice(0, lines.length).map((line, index) => {
    let shift = 0
    const segments = lines[index]!.map((segment): typeof segment => {
      for (; next < edits.length && edits[next]!.at + edits[next]!.removed <= lineStart + segment[0]; next++) {
        shift += edits[next]!.text.length - edits[next]!.removed
      }
      const [column, ...source] = segment
      return [column + shift, ...source] as typeof segment
    })
    lineStart += line.length + 1
    while (next < edits.length && edits[next]!.at < lineStart) next++
    return segments
  })
  return { code: text + code.slice(end), mappings: encode(moved) }
}

/** Returns a file, and the mappings of its source map, with the functions at some offsets in parentheses, and in ASCII. */
export const edit = async (
  code: string,
  mappings: string,
  starts: ReadonlySet<number>
): Promise<{ readonly code: string; readonly mappings: string }> =>
  edited(code, mappings, [...await parentheses(code, starts), ...escapes(code)])

/** Edits the bundled files in the folder `code`. */
export const compileAtLoad = async (dist: string): Promise<void> => {
  const starts = await runTrial(dist)
  const folder = join(dist, "code")
  const names = await readdir(folder, { recursive: true })
  const paths = names.filter((name) => name.endsWith(".js")).map((name) => join(folder, name))
  if (!paths.some((path) => starts.has(path))) throw new Error(`the trial has run no file of ${folder}`)
  for (const path of paths) {
    const code = await readFile(path, "utf8")
    const map = await readFile(`${path}.map`, "utf8").then(JSON.parse, () => undefined)
    const result = await edit(code, map?.mappings ?? "", starts.get(path) ?? new Set())
    if (result.code === code) continue
    await writeFile(path, result.code)
    if (map !== undefined) await writeFile(`${path}.map`, JSON.stringify({ ...map, mappings: result.mappings }))
  }
}
