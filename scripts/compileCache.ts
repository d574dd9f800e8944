/**
 * Keeps the compiled code of modules in `node_modules`, for the processes of tests.
 *
 * Most processes inherit the variable `NODE_COMPILE_CACHE`. A server that a client starts over stdio does not, and
 * imports this module before its program.
 */
import { enableCompileCache } from "node:module"
import { join } from "node:path"

/** The folder of the compiled code. */
export const folder: string = join(import.meta.dirname, "../node_modules/.cache/node")

/** The flag that imports this module. */
export const flag = `--import=${import.meta.filename}`

enableCompileCache(folder)
