/** Runs once before all tests: Effect 4 needs a Node that an old system does not have, so say so instead of failing oddly. */
const needed = [22, 19] as const

/** Fails where this process runs on a Node older than the one that `engines` asks for. */
export default function setup(): void {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
  if (major > needed[0] || (major === needed[0] && minor >= needed[1])) return
  throw new Error(
    `Skein needs Node >= ${
      needed.join(".")
    }, and this is ${process.versions.node}. Run the tests through npm (npm test): ` +
      "the dev dependency \"node\" brings its own. If it is missing, install again without --ignore-scripts."
  )
}
