/**
 * `npm run sandbox-script`: bundles `packages/code-mode/worker` with QuickJS into one module of `@skein/code-mode`, as
 * compressed text. A server that is bundled into one file then contains the sandbox, and a server that runs no program
 * never loads it. A test compares the module with the sources.
 */
import { build } from "esbuild"
import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { brotliCompressSync } from "node:zlib"

const root = join(import.meta.dirname, "..")

/** The module that the script is written to. */
export const target: string = join(root, "packages/code-mode/src/internal/sandbox/sandboxScript.ts")

/** Bundles the thread of a program as a script. */
export const bundled = async (): Promise<string> => {
  const { outputFiles } = await build({
    entryPoints: [join(root, "packages/code-mode/worker/main.ts")],
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    target: "node22",
    // The engine for browsers, which does not use Node. The server passes its compiled module to the thread.
    conditions: ["@skein/source", "browser"],
    minify: true,
    legalComments: "none",
    charset: "utf8"
  })
  return outputFiles[0]!.text
}

/** QuickJS. */
export const engine: Promise<Buffer> = readFile(
  new URL(import.meta.resolve("@jitl/quickjs-wasmfile-release-sync/wasm"))
)

const lineChars = 1000

const compressed = (bytes: string | Buffer): string =>
  brotliCompressSync(bytes).toString("base64")
    .match(new RegExp(`.{1,${lineChars}}`, "g"))!.map((line) => `  "${line}"`).join(",\n")

/** The text of the module. */
export const scriptModule = async (): Promise<string> => {
  return [
    "/**",
    " * The script of the thread of a program, and its engine, compressed by Brotli, in base64. Written by `npm run",
    " * sandbox-script`: do not edit.",
    " *",
    " * It contains QuickJS (Copyright 2017-2021 Fabrice Bellard and Charlie Gordon) and quickjs-emscripten (Copyright 2019-",
    " * 2024 Jake Teton-Landis), both under the MIT license: see the README of the package.",
    " */",
    "const scriptLines: ReadonlyArray<string> = [",
    compressed(await bundled()),
    "]",
    "",
    "const engineLines: ReadonlyArray<string> = [",
    compressed(await engine),
    "]",
    "",
    "/** The script: `packages/code-mode/worker/main.ts`. */",
    "export const compressedScript: string = scriptLines.join(\"\")",
    "",
    "/** QuickJS in WebAssembly. */",
    "export const compressedEngine: string = engineLines.join(\"\")",
    ""
  ].join("\n")
}

if (import.meta.main) {
  const text = await scriptModule()
  await writeFile(target, text)
  console.log(`packages/code-mode/src/internal/sandbox/sandboxScript.ts  ${text.length} characters`)
}
