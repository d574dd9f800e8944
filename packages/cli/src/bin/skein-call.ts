#!/usr/bin/env node
import { main } from "../Call.ts"

main(process.argv.slice(2))
