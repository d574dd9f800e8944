/** Bundles a program for browsers, without any module of Node. */
import * as esbuild from "esbuild"
import { isBuiltin } from "node:module"
import { join } from "node:path"
import { gzipSync } from "node:zlib"

// Names that only Node has. Those that mean the global are renamed, so that a search of the output finds them.
const foreign = ["process", "Buffer", "require", "module", "__dirname", "__filename", "global"] as const
const mark = "$OF_NODE_"

export interface Bundle {
  /** A classic script that assigns the exports of the program to `program`. */
  readonly code: string
  /** Its size, in bytes. */
  readonly minified: number
  /** The size after gzip, in bytes. */
  readonly gzip: number
  /** The imported modules of Node, and the lines that use a global of Node without `typeof`. */
  readonly ofNode: ReadonlyArray<string>
  /** The sources, by path from the root of the tree. */
  readonly inputs: ReadonlyArray<string>
}

const root = join(import.meta.dirname, "../../../..")

/** The program that the tests run. */
export const program = "packages/client/test/browser/program.ts"

/** Bundles a program. Modules that are only loaded on demand (`Client.toolkit`) are excluded. */
export const bundle = async (entry: string, contents?: string): Promise<Bundle> => {
  const found = new Set<string>()
  const options = {
    absWorkingDir: root,
    ...(contents === undefined
      ? { entryPoints: [entry] }
      : { stdin: { contents, resolveDir: import.meta.dirname, loader: "ts" as const } }),
    bundle: true,
    write: false,
    platform: "browser",
    format: "iife",
    globalName: "program",
    target: "es2023",
    conditions: ["@skein/source", "browser", "module"],
    logLevel: "silent",
    metafile: true,
    define: Object.fromEntries(foreign.map((name) => [name, mark + name])),
    plugins: [{
      name: "bounds",
      setup(build) {
        build.onResolve(
          { filter: /\/Toolkit\.ts$/ },
          ({ kind, path }) => kind === "dynamic-import" ? { path, external: true } : undefined
        )
        build.onResolve({ filter: /^[a-z]/ }, ({ importer, path }) => {
          if (!isBuiltin(path)) return undefined
          found.add(`${path} in ${importer}`)
          return { path, external: true }
        })
      }
    }]
  } satisfies esbuild.BuildOptions
  const readable = await esbuild.build(options)
  const { outputFiles: [small] } = await esbuild.build({ ...options, define: {}, minify: true })
  for (const [line] of readable.outputFiles[0]!.text.matchAll(/^.*\$OF_NODE_.*$/gm)) {
    if (/(?<!typeof )\$OF_NODE_/.test(line)) found.add(line.trim())
  }
  return {
    code: small!.text,
    minified: small!.contents.byteLength,
    gzip: gzipSync(small!.contents).byteLength,
    ofNode: Array.from(found, (line) => line.replaceAll(mark, "")),
    inputs: Object.keys(readable.metafile.inputs)
  }
}
