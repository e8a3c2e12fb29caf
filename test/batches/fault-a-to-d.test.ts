import { defineBatch } from '../kit/batch.ts';

defineBatch('test/fault/[a-d]*.test.ts');
