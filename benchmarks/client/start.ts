/**
 * The shortest program with a result: it connects, calls a tool, prints the result, and prints the detection result for
 * the next start.
 */
import { greetOnce } from "./driver.ts"
import type { Connect, Target } from "./testClient.ts"

export const start = async (connect: Connect): Promise<void> => {
  const [url, era, kept] = process.argv.slice(2) as [string, Target["era"], string | undefined]
  const client = await connect(kept === undefined ? { url, era } : { url, era, kept: JSON.parse(kept) })
  console.log(await greetOnce(client))
  if (client.kept !== undefined) console.log(JSON.stringify(client.kept))
  await client.close()
}
