/**
 * `npm run build`: bundles `src/main.ts` and everything that it imports into `dist/bundle.cjs`.
 *
 * `dist/main.cjs` starts the bundle with Node's compile cache: the first start compiles the bundle, and later starts
 * read the compiled code. Both files are CommonJS, which Node loads faster than modules. For top-level await, set the
 * format to "esm" and name the files `.mjs`.
 */
import { writeFile } from "node:fs/promises"
import { rolldown } from "rolldown"

const main = `require("node:module").enableCompileCache()
require("./bundle.cjs")
`

const bundle = await rolldown({ input: "src/main.ts", platform: "node" })
await bundle.write({ file: "dist/bundle.cjs", format: "cjs", codeSplitting: false, minify: true, sourcemap: true })
await writeFile("dist/main.cjs", main)
