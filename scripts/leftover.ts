/** Finds the code that a bundler keeps of a module that is imported but not used. A published module leaves none. */
import * as esbuild from "esbuild"
import { readFile } from "node:fs/promises"
import { basename, dirname } from "node:path"

/**
 * Treats the imports of the module as external and free of side effects, so that the remaining code is the module's
 * own. `export *` is removed: for an external module the bundler would keep it as code, which it does not do for a
 * module that it has.
 */
const alone: esbuild.Plugin = {
  name: "alone",
  setup(build) {
    build.onResolve({ filter: /./ }, async ({ importer, kind, path, pluginData, resolveDir }) => {
      if (pluginData === alone) return undefined
      if (importer !== "<stdin>") return { path, external: true, sideEffects: false }
      return { path: (await build.resolve(path, { kind, resolveDir, pluginData: alone })).path, sideEffects: true }
    })
    build.onLoad({ filter: /\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replaceAll(/^export \* from .*$/gm, "")
    }))
  }
}

/** Returns the remaining code of one module of a `dist`, or an empty string. */
export const leftover = async (file: string): Promise<string> => {
  const { outputFiles } = await esbuild.build({
    stdin: { contents: `import "./${basename(file)}"`, resolveDir: dirname(file) },
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    target: "node22",
    minifySyntax: true,
    plugins: [alone]
  })
  return (outputFiles[0]?.text ?? "").replaceAll(/^(\/\/|import ).*\n/gm, "").trim()
}
