import { defineBatch } from '../kit/batch.ts';

defineBatch('test/fault/duplicates-*.test.ts');
