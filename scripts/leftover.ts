/** What a bundler cannot drop of a module that is loaded, and of which nothing is used: it should be nothing. */
import * as esbuild from "esbuild"
import { readFile } from "node:fs/promises"
import { basename, dirname } from "node:path"

/**
 * Everything that the module imports is taken as free of effects, so that what is left is its own. A bundler that has what `export *`
 * names makes no code of it; of one that is external it would.
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

/** The code that is left of one module of a `dist`, or an empty string. */
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
