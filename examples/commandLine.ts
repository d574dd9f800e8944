/**
 * The command lines of the examples. `--help` prints the usage. A wrong command line prints what is wrong and the
 * usage on stderr, and the process exits with 2.
 */
import { parseArgs, type ParseArgsConfig } from "node:util"

/** Ends the process because of a wrong command line. */
export const usageError = (usage: string, message: string): never => {
  console.error(`${message}\nusage: ${usage}`)
  return process.exit(2)
}

/** The options and other arguments of this process. `usage` is one line. */
export const commandLine = <const Config extends ParseArgsConfig>(
  usage: string,
  config: Config
): ReturnType<typeof parseArgs<Config>> => {
  const args = process.argv.slice(2)
  if (args.includes("--help") || args.includes("-h")) {
    console.log(`usage: ${usage}`)
    process.exit(0)
  }
  try {
    return parseArgs<Config>({ ...config, args })
  } catch (error) {
    return usageError(usage, error instanceof Error ? error.message : String(error))
  }
}

/** Reads the value of `--port`: 0 chooses a free port. */
export const portOf = (usage: string, text: string): number =>
  /^\d{1,5}$/.test(text) && Number(text) < 65_536
    ? Number(text)
    : usageError(usage, `--port is a number from 0 to 65535, not ${JSON.stringify(text)}`)
