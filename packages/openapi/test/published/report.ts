/** `node --conditions=@skein/source packages/openapi/test/published/report.ts`: prints the numbers of the documents. */
import * as Effect from "effect/Effect"
import { documents } from "./documents.ts"
import { measure } from "./measure.ts"

console.log("| Document | Operations | Tools | Left out | ms | tools/list, KiB | Largest tool, KiB | Called |")
console.log("| --- | --- | --- | --- | --- | --- | --- | --- |")
for (const [name, url] of documents) {
  const { called, largestTool, leftOut, listChars, millis, operations, tools } = await Effect.runPromise(measure(url))
  const kib = (chars: number): string => (chars / 1024).toFixed(chars < 100 * 1024 ? 1 : 0)
  console.log(
    `| ${name} | ${operations} | ${tools} | ${leftOut} | ${millis} | ${kib(listChars)} | ${
      kib(largestTool)
    } | ${called} |`
  )
}
