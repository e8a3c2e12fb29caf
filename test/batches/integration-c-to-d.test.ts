import { defineBatch } from '../kit/batch.ts';

defineBatch('test/integration/**/[cd]*.test.ts');
