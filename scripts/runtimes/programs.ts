/**
 * The programs of the guides and of the comparison that use the package `skein`, with their tests, as files of a project outside of
 * this repository: each is where it is here. A program that a page shows as a whole is the text of the page.
 */
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { type Block, blocksOf, guides } from "../../docs/test/blocks.ts"
import { root } from "../build.ts"

const usesSkein = (text: string): boolean => /^(?:import|export) [^]*? from "skein(?:\/\w+)?"$/m.test(text)

const read = (path: string): string => readFileSync(join(root, path), "utf8")

/** The files that modules import by relative paths, with themselves. */
const withImports = (paths: Iterable<string>, found: Set<string> = new Set()): ReadonlySet<string> => {
  for (const path of paths) {
    if (found.has(path)) continue
    found.add(path)
    const imports = read(path).matchAll(/\bfrom "(\.[^"]+)"/g)
    withImports(Array.from(imports, ([, imported]) => join(dirname(path), imported!)), found)
  }
  return found
}

const find = (pattern: string): ReadonlyArray<string> =>
  globSync(pattern, { cwd: root }).filter((path) => usesSkein(read(path))).toSorted()

/** The contents of the project. */
export interface Programs {
  /** The tests: paths in the project. */
  readonly tests: ReadonlyArray<string>
  /** The programs that are checked by the compiler. */
  readonly checked: ReadonlyArray<string>
  /** The blocks of the pages that are whole programs, and those that are parts of programs. */
  readonly whole: ReadonlyArray<Block>
  readonly parts: ReadonlyArray<Block>
}

/** The file of a block that shows a program of the guides or of the comparison. */
const fileOf = ({ info }: Block): string | undefined => {
  const [, file] = /^ts ((?:programs|examples)\/[\w./]+)(?:#\w+)?$/.exec(info) ?? []
  return file?.startsWith("programs/") === true ? `docs/${file}` : file
}

/** Writes the files. */
export const writePrograms = (project: string): Programs => {
  const programs = find("docs/programs/**/*.ts")
  const compared = find("examples/comparison/*/skein.ts")
  const templates = find("packages/create-skein/templates/*/async/test/*.test.ts")
  const tests = [
    ...globSync("docs/test/async/*.test.ts", { cwd: root }).toSorted(),
    ...programs.filter((path) => path.endsWith(".test.ts")),
    "examples/comparison.test.ts",
    ...templates
  ]
  const files = withImports([...programs, ...compared, ...tests, "docs/test/anyPort.ts", "scripts/runtimes/check.ts"])
  const creating = ["package.json", "src", "templates"].map((name) => `packages/create-skein/${name}`)
  for (const path of [...files, ...guides.map((guide) => `docs/${guide}`), "examples/comparison", ...creating]) {
    cpSync(join(root, path), join(project, path), { recursive: true })
  }
  const blocks = guides.flatMap(blocksOf).filter((block) => {
    const file = fileOf(block)
    return file !== undefined && (programs.includes(file) || compared.includes(file))
  })
  const whole = blocks.filter(({ text }) => usesSkein(text))
  for (const block of whole) {
    const path = join(project, fileOf(block)!)
    mkdirSync(dirname(path), { recursive: true })
    // Tests read the region.
    const [, region] = /#(\w+)$/.exec(block.info) ?? []
    writeFileSync(
      path,
      region === undefined ? `${block.text}\n` : `// #region ${region}\n${block.text}\n// #endregion\n`
    )
  }
  return { tests, checked: [...programs, ...compared], whole, parts: blocks.filter((block) => !whole.includes(block)) }
}
