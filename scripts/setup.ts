/**
 * Runs once before all tests.
 */
import { folder } from "./compileCache.ts"

const needed = [22, 19] as const

/** Prepares the environment that the processes of the tests inherit. */
export default function setup(): void {
  checkNode()
  // Hundreds of processes load the same modules. With the compiled code of an earlier one, a server starts in half of the
  // processor time.
  process.env["NODE_COMPILE_CACHE"] ??= folder
}

/**
 * Fails if the Node of this process is older than `engines` in package.json requires. Without the check, Effect 4 fails
 * on an old Node with an unrelated error.
 */
function checkNode(): void {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
  if (major > needed[0] || (major === needed[0] && minor >= needed[1])) return
  const required = needed.join(".")
  throw new Error(
    `Skein requires Node ${required} or newer, and this is Node ${process.versions.node}. Run the tests with npm test, ` +
      "which uses the Node of the dev dependency \"node\". If it is missing, run npm ci without --ignore-scripts."
  )
}
